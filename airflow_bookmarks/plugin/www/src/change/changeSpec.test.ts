import { describe, expect, it } from "vitest";
import type { ChangeSpec, ContextRow, RunRow } from "../api/model";
import {
  changeBody,
  changeSpecOf,
  type Draft,
  draftOf,
  isNameTyped,
  isRewindable,
  lacking,
  lackOfClean,
  lackOfReason,
  requestBody,
} from "./changeSpec";
import { contextName, settingOf, settleRun, settleTime } from "./setting";

type SetBy = NonNullable<ContextRow["set_by"]>;

function context(ctx: string, kind: string, set_by: SetBy | null, upstream: string | null = null): ContextRow {
  const source = `${kind}:${upstream ?? "/raw"}`;
  const plain = { watermark: null, order: null, run_number: 1, set_in_epoch: null, position: "" };
  return { ctx, kind, source, set_by, upstream, ...plain, reads_parts: false, quarantined: 0 };
}

function run(number: number, state: string): RunRow {
  return {
    number,
    fence: number,
    state,
    amounts: {},
    contexts: {},
    outputs: {},
    left_out: {},
    seconds: {},
    watermark: {},
    order: {},
    window: {},
  };
}

const FILES = context("flights", "files", "time");
const UPSTREAM = context("people", "upstream", "run", "people:clean");
const STATE = context(".state", "state", null);
const CONTEXTS = [FILES, UPSTREAM, STATE];
const JOB = { contexts: CONTEXTS, may_look: true };
const BLIND = { contexts: CONTEXTS, may_look: false };
const SURE = { reason: " wrong delivery ", typed: "clean", force: false };

const FREE = { isHeld: false, isOld: false };
const HELD = { isHeld: true, isOld: false };

function draft(kind: Draft["kind"], more: Partial<Draft> = {}): Draft {
  return { ...draftOf(kind, JOB, undefined), ...more };
}

describe("a form", () => {
  it.each<[string, Draft, ChangeSpec]>([
    ["resets all contexts", draft("reset"), { kind: "reset", clean: false }],
    ["resets and cleans", draft("reset", { clean: true }), { kind: "reset", clean: true }],
    [
      "never cleans with some contexts, which the server refuses",
      draft("reset", { clean: true, contexts: ["people", "flights"] }),
      { kind: "reset", clean: false, contexts: ["flights", "people"] },
    ],
    ["rewinds", draft("rewind", { toRun: 4 }), { kind: "rewind", to_run: 4, clean: false }],
    ["sets files to now", draft("set", { isNow: true }), { kind: "set", ctx: "flights", value: "now" }],
    [
      "sets an upstream to a run, as a number",
      draft("set", { ctx: "people", isNow: false, typed: " 7 " }),
      { kind: "set", ctx: "people", value: 7 },
    ],
    ["undoes", draft("undo"), { kind: "undo" }],
    ["deletes", draft("delete"), { kind: "delete", clean: false }],
    ["deletes and cleans", draft("delete", { clean: true }), { kind: "delete", clean: true }],
  ])("%s", (_, given, spec) => expect(changeSpecOf(given, JOB)).toEqual({ value: spec }));

  it.each<[string, Draft, readonly ContextRow[]]>([
    ["a run to rewind to", draft("rewind"), CONTEXTS],
    ["a context", draft("reset", { contexts: [] }), CONTEXTS],
    ["a context", draft("set", { ctx: "" }), []],
    ["a new position", draft("set"), CONTEXTS],
    ["a context that can be set", draft("set", { ctx: ".state" }), CONTEXTS],
    ["a time", draft("set", { isNow: false }), CONTEXTS],
    ["a run number", draft("set", { ctx: "people", isNow: false }), CONTEXTS],
  ])("lacks %s", (lacks, given, contexts) =>
    expect(changeSpecOf(given, { contexts, may_look: true })).toEqual({ lacks }),
  );

  it("begins with the picked run", () => expect(draftOf("rewind", JOB, run(4, "PUBLISHED")).toRun).toBe(4));
  it("does not begin with a run that was undone", () =>
    expect(draftOf("rewind", JOB, run(4, "UNDONE")).toRun).toBeNull());
  it("begins with a context that can be set", () =>
    expect(draftOf("set", { ...JOB, contexts: [STATE, FILES] }, undefined).ctx).toBe("flights"));
});

describe("a page that may look at no files", () => {
  it("sends no clean, which the server refuses", () =>
    expect(changeSpecOf(draft("reset", { clean: true }), BLIND)).toEqual({ value: { kind: "reset", clean: false } }));
  it("sends no deletion with one either", () =>
    expect(changeSpecOf(draft("delete", { clean: true }), BLIND)).toEqual({ value: { kind: "delete", clean: false } }));
  it("says why nothing is removed, and who can", () => {
    const why = lackOfClean(draft("delete"), BLIND);
    expect(why).toContain("look_below is empty");
    expect(why).toContain("command line");
  });
  it.each([true, false])("sets no files, whether to now or not (%s)", (isNow) =>
    expect(changeSpecOf(draft("set", { isNow, typed: "2026-05-03T10:30:05" }), BLIND)).toEqual({
      lacks: "a context that can be set",
    }),
  );
  it("says why files can't be set, and who can", () => {
    const setting = settingOf(FILES, false);
    expect(setting).toMatchObject({ by: "nothing", why: expect.stringContaining("airflow-bookmarks set") });
    expect(setting).toMatchObject({ why: expect.stringContaining("look_below is empty") });
  });
  it("begins with an upstream, which takes no look", () => {
    expect(draftOf("set", BLIND, undefined).ctx).toBe("people");
    expect(changeSpecOf(draft("set", { ctx: "people", isNow: true }), BLIND)).toEqual({
      value: { kind: "set", ctx: "people", value: "now" },
    });
  });
});

describe("what the undone runs wrote", () => {
  it("can be removed with them", () => {
    expect(lackOfClean(draft("reset"), JOB)).toBeNull();
    expect(lackOfClean(draft("delete"), JOB)).toBeNull();
  });
  it("stays where only some contexts change", () =>
    expect(lackOfClean(draft("reset", { contexts: ["people"] }), JOB)).toContain("undoes no run"));
});

describe("a run that can be gone back to", () => {
  it.each(["COMMITTED", "PUBLISHED"])("may be %s", (state) => expect(isRewindable(run(1, state))).toBe(true));
  it.each(["FAILED", "PLANNED", "ABANDONED", "UNDONE", "DAMAGED"])("is not %s", (state) =>
    expect(isRewindable(run(1, state))).toBe(false),
  );
});

describe("a context", () => {
  it("of files takes a time", () => expect(settingOf(FILES, true)).toEqual({ by: "time" }));
  it("of an upstream takes a run of it, whatever its name", () =>
    expect(settingOf(UPSTREAM, true)).toEqual({ by: "run", upstream: "people:clean" }));
  it("of job.state is set by its script", () => expect(settingOf(STATE, true).by).toBe("nothing"));
  it("of job.state is called that", () =>
    expect([".state", "flights"].map(contextName)).toEqual(["job.state", "flights"]));
  it("of a kind that this server does not know can't be set", () =>
    expect(settingOf(context("orders", "jdbc", null), true)).toEqual({
      by: "nothing",
      why: "orders is of kind jdbc, which can't be set here.",
    }));
  it("of a user's own kind takes a text, without a look at files", () => {
    const row = context("rows", "keys", "text");
    const offering = { contexts: [row], may_look: false };
    expect(settingOf(row, false)).toEqual({ by: "text" });
    expect(changeSpecOf(draft("set", { ctx: "rows", typed: " 41 " }), offering)).toEqual({
      value: { kind: "set", ctx: "rows", value: "41" },
    });
    expect(changeSpecOf(draft("set", { ctx: "rows" }), offering)).toEqual({ lacks: "a position" });
  });
});

describe("a time", () => {
  it.each([
    ["2026-05-03T10:30:05", "Europe/Berlin", "2026-05-03T08:30:05.000Z"],
    ["2026-05-03T10:30", "UTC", "2026-05-03T10:30:00.000Z"],
    ["2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"],
  ])("%s of %s is sent in UTC", (typed, zone, value) => expect(settleTime(typed, zone)).toEqual({ value }));
  it("that the clocks of the zone skip is none", () =>
    expect(settleTime("2026-03-29T02:30", "Europe/Berlin")).toEqual({
      lacks: "a time that exists in Europe/Berlin, where clocks skip this one",
    }));
  it.each([
    ["9999-12-31T23:30", "America/New_York"],
    ["0001-01-01T00:30", "Europe/Berlin"],
    ["0000-06-01T00:30", "UTC"],
  ])("%s of %s is out of bounds", (typed, zone) => expect(settleTime(typed, zone)).toHaveProperty("lacks"));
  it.each(["", "yesterday", "+275760-01-01T00:00"])("is not %j", (typed) =>
    expect(settleTime(typed)).toHaveProperty("lacks"),
  );
});

describe("the number of a run", () => {
  it.each([
    ["0", 0],
    ["007", 7],
    ["9999999999", 9_999_999_999],
  ])("is %s", (typed, value) => expect(settleRun(typed)).toEqual({ value }));
  it.each(["", "-1", "1.5", "1e3", "\u0661", "10000000000"])("is not %j", (typed) =>
    expect(settleRun(typed)).toHaveProperty("lacks"),
  );
});

describe("before a change is sent", () => {
  it("nothing is missing", () => expect(lacking("clean", SURE, FREE)).toEqual([]));
  it("a reason is given", () => expect(lacking("clean", { ...SURE, reason: " \n" }, FREE)).toEqual(["a reason"]));
  it("the name is typed", () => expect(lacking("clean", { ...SURE, typed: "clea" }, FREE)).toEqual(["the job's name"]));
  it("a run in the way loses the job", () => {
    expect(lacking("clean", SURE, HELD)).toEqual(["stopping the current run from committing"]);
    expect(lacking("clean", { ...SURE, force: true }, HELD)).toEqual([]);
  });
  it("the new preview is looked at, if the job moved since the old one", () =>
    expect(lacking("clean", SURE, { isHeld: false, isOld: true })).toEqual(["a refreshed preview"]));
  it("a name that was pasted with its line end is the name", () => expect(isNameTyped("clean", " clean\n")).toBe(true));
  it("a name in capitals is another name", () => expect(isNameTyped("clean", "Clean")).toBe(false));
  it("a reason has 2,000 characters at most, as the server counts them", () => {
    expect(lackOfReason("x".repeat(2000))).toBeUndefined();
    expect(lackOfReason("\u{1F600}".repeat(2000))).toBeUndefined();
    expect(lackOfReason("x".repeat(2001))).toBe("a reason of at most 2000 characters (this has 2001)");
  });
});

describe("a body", () => {
  const spec: ChangeSpec = { kind: "rewind", to_run: 4, clean: false };
  it("of a change is of the version that was previewed", () =>
    expect(changeBody(spec, "clean", SURE, 9)).toEqual({
      ...spec,
      reason: "wrong delivery",
      expected_version: 9,
      confirm: "clean",
      force: false,
    }));
  it("of a request says nothing of force, which is the approver's to say", () =>
    expect(requestBody(spec, "clean", SURE.reason, 9)).toEqual({
      ...spec,
      reason: "wrong delivery",
      expected_version: 9,
      confirm: "clean",
    }));
});
