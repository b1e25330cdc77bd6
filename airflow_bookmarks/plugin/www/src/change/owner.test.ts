import { describe, expect, it } from "vitest";
import type { OwnershipPreview } from "../api/model";
import { ownerActionName, ownerBody, ownerFactsOf, ownerSpecOf, ownerWarningsOf } from "./owner";

const SEEN: OwnershipPreview = {
  job: "flights.clean",
  change: "hand-over",
  dag: "nights",
  seen: { version: 3, owner: "flights", shared_with: ["days"] },
  owner: "nights",
  shared_with: ["days"],
  asked_of: ["flights"],
  asked_of_after: ["nights", "flights"],
  is_seen: true,
  may_change_after: true,
  shards: null,
  needs_approval: false,
};

describe("a change of an owner", () => {
  it.each([
    [{ kind: "share", dag: " ", renamed: null }, { lacks: "a DAG" }],
    [{ kind: "share", dag: " nights ", renamed: null }, { value: { kind: "share", dag: "nights" } }],
    [{ kind: "hand-over", dag: "nights", renamed: null }, { lacks: "what this DAG is" }],
    [
      { kind: "hand-over", dag: "nights", renamed: false },
      { value: { kind: "hand-over", dag: "nights", renamed: false } },
    ],
  ] as const)("of %j is %j", (draft, spec) => expect(ownerSpecOf(draft)).toEqual(spec));
  it("may not have too long a name", () =>
    expect(ownerSpecOf({ kind: "share", dag: "x".repeat(251), renamed: null })).toHaveProperty("lacks"));
  it.each([
    [{ kind: "share", dag: "nights" }, "Share with DAG nights"],
    [{ kind: "unshare", dag: "nights" }, "Stop sharing with DAG nights"],
    [{ kind: "hand-over", dag: "nights", renamed: false }, "Hand over to DAG nights"],
    [{ kind: "hand-over", dag: "nights", renamed: true }, "Rename the owner to DAG nights"],
  ] as const)("%j is called %s", (spec, name) => expect(ownerActionName(spec)).toBe(name));
  it("is sent with whose the job was when it was looked at", () =>
    expect(ownerBody({ kind: "share", dag: "nights" }, "flights.clean", " agreed ", SEEN)).toEqual({
      kind: "share",
      dag: "nights",
      reason: "agreed",
      confirm: "flights.clean",
      expected_version: 3,
      expected_owner: "flights",
      expected_shared_with: ["days"],
    }));
  it("is told line by line", () =>
    expect(ownerFactsOf(SEEN).map(({ says }) => says)).toEqual([
      "flights now; nights afterwards",
      "days (unchanged)",
      "flights now; nights, flights afterwards",
    ]));
});

describe("a warning", () => {
  const warnings = (more: Partial<OwnershipPreview>) => ownerWarningsOf({ ...SEEN, ...more }).join(" ");
  it("says that the former owner's runs are refused", () => expect(warnings({})).toContain("Runs of DAG flights"));
  it("does not say so of an owner that was renamed", () => expect(warnings({ asked_of_after: ["nights"] })).toBe(""));
  it("does not say so where the job is shared with it", () => expect(warnings({ shared_with: ["flights"] })).toBe(""));
  it("says that the right is lost", () =>
    expect(warnings({ may_change_after: false })).toContain("edit the runs of nights and flights"));
  it("says that the DAG is not known", () => expect(warnings({ is_seen: false })).toContain("DAG nights not found"));
});
