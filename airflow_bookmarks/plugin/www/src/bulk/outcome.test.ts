import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../api/client";
import type { Changed, Requested } from "../api/model";
import { auditInWords, carryOutAll, doneJobs, type Outcome, outcomesInWords, specAsSeen } from "./outcome";
import type { BulkStep, Fate } from "./plan";

// The client of the API asks the page where it is, and here is none.
vi.hoisted(() => vi.stubGlobal("document", { baseURI: "http://airflow.example/" }));

const NEVER = { isStopped: () => false, onDone: () => {} };

function step(job: string, fate: Fate = "change"): BulkStep {
  const error = new ApiError(404, `no bookmark named ${job}`);
  return { looked: { picked: { job, state: "IDLE", order: {} }, of: "nothing", error }, fate, isForced: false };
}

const changed = (job: string, audited = true): Outcome => ({ job, fate: "changed", answer: { audited } as Changed });
const requested = (job: string): Outcome => ({ job, fate: "requested", answer: { audited: true } as Requested });
const refused = (job: string, error: ApiError): Outcome => ({ job, fate: "refused", error });

const MOVED = new ApiError(409, "job has moved", { error: "ChangedMeanwhileError", message: "job has moved" });
const LOGGED_OUT = new ApiError(401, "You are logged out.");
const GONE = new ApiError(0, "Airflow's server could not be reached.", undefined, "unreachable");

describe("one job after the other", () => {
  it("a refusal is of that job alone, and what is not to be changed is not sent", async () => {
    const sent: string[] = [];
    const counted: number[] = [];
    const make = async ({ looked }: BulkStep) => {
      sent.push(looked.picked.job);
      return looked.picked.job === "a" ? refused("a", MOVED) : changed(looked.picked.job);
    };
    const how = { isStopped: () => false, onDone: (jobs: number) => counted.push(jobs) };

    const outcomes = await carryOutAll([step("a"), step("b", "refused"), step("c")], make, how);

    expect(outcomes.map(({ job, fate }) => [job, fate])).toEqual([
      ["a", "refused"],
      ["b", "untouched"],
      ["c", "changed"],
    ]);
    expect([sent, counted]).toEqual([
      ["a", "c"],
      [1, 2],
    ]);
    expect(doneJobs(outcomes)).toEqual(["c"]);
  });

  it("a person stops it before the next job", async () => {
    let isStopped = false;
    const make = async ({ looked }: BulkStep) => {
      isStopped = true;
      return changed(looked.picked.job);
    };
    const how = { isStopped: () => isStopped, onDone: () => {} };

    const outcomes = await carryOutAll([step("a"), step("b"), step("c")], make, how);

    expect(outcomes.slice(1)).toEqual(
      ["b", "c"].map((job) => ({ job, fate: "untouched", why: "Not sent, because you stopped." })),
    );
  });

  it.each([
    [refused("a", LOGGED_OUT), "Not sent, because you are logged out."],
    [{ job: "a", fate: "unconfirmed", error: GONE } as Outcome, "Not sent, because Airflow can't be reached."],
  ])("nothing more is sent where it would not arrive: %#", async (first, why) => {
    const outcomes = await carryOutAll([step("a"), step("b")], async () => first, NEVER);
    expect(outcomes).toEqual([first, { job: "b", fate: "untouched", why }]);
  });

  it("an answer that came too late is of that job alone", async () => {
    const late = new ApiError(0, "took too long", undefined, "timeout");
    const first: Outcome = { job: "a", fate: "unconfirmed", error: late };
    const outcomes = await carryOutAll(
      [step("a"), step("b")],
      async ({ looked }) => (looked.picked.job === "a" ? first : changed("b")),
      NEVER,
    );
    expect(outcomes).toEqual([first, changed("b")]);
  });

  it("a fault of the page is not told as a refusal", async () => {
    const make = async () => Promise.reject(new TypeError("no such field"));
    await expect(carryOutAll([step("a")], make, NEVER)).rejects.toThrow(TypeError);
  });
});

it("a rewind is made to the run that its preview found, whatever was typed", () => {
  expect(specAsSeen({ kind: "rewind", to: "2026-11-19T08:00:00Z", clean: true }, { to_run: 7 })).toEqual({
    kind: "rewind",
    to_run: 7,
    clean: true,
  });
  expect(specAsSeen({ kind: "reset", clean: false }, { to_run: 0 })).toEqual({ kind: "reset", clean: false });
});

it("the result counts what became of the jobs", () => {
  const outcomes: Outcome[] = [
    changed("a"),
    changed("b"),
    requested("c"),
    refused("d", MOVED),
    { job: "e", fate: "unconfirmed", error: GONE },
    { job: "f", fate: "untouched", why: "Already there: nothing changes." },
  ];
  expect(outcomesInWords(outcomes)).toBe("2 changed, 1 requested, 1 left unchanged, 1 refused, 1 not confirmed");
});

it("the audit log is said to lack what it lacks", () => {
  expect(auditInWords([changed("a"), requested("b")])).toBe(
    "Each change is recorded in its job's history and in Airflow's audit log.",
  );
  expect(auditInWords([changed("a", false), changed("b")])).toContain("but 1 of them not in Airflow's audit log");
  expect(auditInWords([refused("a", MOVED)])).toBeUndefined();
});
