import { describe, expect, it } from "vitest";
import type { EventRow } from "../../api/model";
import { changeWords, epochWords, eventWords, knownBy, movesOf } from "./events";

const event = (kind: string, overrides: Partial<EventRow> = {}): EventRow => ({
  kind,
  who: "ada",
  at: "2026-05-03T10:00:00Z",
  why: "wrong rows",
  ...overrides,
});

describe("an event", () => {
  it.each([
    ["airflow", "logged in"],
    ["os, airflow", "OS user, logged in"],
    ["told", "reported by a program"],
    [null, "source unknown"],
  ])("says how the name in it is known: %s", (who_kind, said) => {
    expect(knownBy({ who_kind })).toBe(said);
  });

  it.each([
    [event("reset", { to_run: 0 }), "Reset to before its first run"],
    [event("rewind", { to_run: 4 }), "Rewound to run 4"],
    [event("rewind", { to_run: 0 }), "Rewound to before its first run"],
    [event("set", { ctx: "flights", value: "now" }), "Set flights to now"],
    [event("set", { ctx: "flights", value: "2026-05-03T10:00:00.000Z" }), "Set flights to 2026-05-03 10:00:00 UTC"],
    [event("undo", { to_run: 7 }), "Undid the last change: back to run 7"],
    [event("replay", { run: "5.9" }), "Replayed run 5"],
    [event("share", { dag: "sales" }), "Shared with DAG sales"],
    [event("unshare", { dag: "sales" }), "No longer shared with DAG sales"],
    [event("hand-over", { dag: "sales", owner_before: "lake" }), "Handed over from DAG lake to DAG sales"],
    [event("hand-over", { dag: "pond", owner_before: "lake", renamed: true }), "Owner renamed from DAG lake to pond"],
    [event("settle", { run: "7.9", value: "given-up" }), "Run 7, partly published, settled as given-up"],
    [event("unlock", { held_by: "flights/manual__1/clean" }), "Unlocked (was held by flights/manual__1/clean)"],
    [
      event("request", { change: { kind: "rewind", to_run: "4", clean: true } }),
      "Requested: rewind to run 4, with clean",
    ],
    [event("protect"), "Protected"],
    [event("of a later version"), "of a later version"],
  ])("is said in words: %o", (kind, words) => expect(eventWords(kind)).toBe(words));
});

it("a change without facts is said all the same", () => {
  expect(changeWords(null)).toBe("a change");
  expect(changeWords({ kind: "set", ctx: "flights", value: 41 })).toBe("set flights to 41");
  expect(changeWords({ kind: "reset", contexts: ["a", "b"] })).toBe("reset (a, b only)");
});

it("watermarks that stayed are left out", () => {
  const rewind = event("rewind", {
    watermarks_before: { a: "9", b: "3", c: "5" },
    watermarks_after: { a: "4", b: "3" },
  });
  expect(movesOf(rewind)).toEqual([
    { ctx: "a", before: "9", after: "4" },
    { ctx: "c", before: "5", after: null },
  ]);
});

describe("the epoch of an event", () => {
  it.each([
    [{ epoch_before: 1, epoch_after: 2 }, "1 to 2"],
    [{ epoch_before: 2, epoch_after: 2 }, "2"],
    [{ epoch_before: 2 }, "2"],
    [{ epoch_before: null, epoch_after: null }, ""],
  ])("%j is %j", (epoch, words) => expect(epochWords(epoch)).toBe(words));
});
