import { describe, expect, it } from "vitest";
import type { ChangeSpec, Preview } from "../api/model";
import { type ChangeSummary, summaryOf, summaryOfRequest } from "./changeSummary";
import {
  actionName,
  againInWords,
  consumersInWords,
  eventName,
  factsOf,
  fixOf,
  fixOfRequest,
  inRanges,
  inSentence,
  neverReadInWords,
  neverReadTitle,
  requestName,
  twiceInWords,
  twiceTitle,
  undoneInWords,
} from "./words";

const PREVIEW: Preview = {
  job: "clean",
  change: "rewind",
  version: 9,
  to_run: 4,
  undone_runs: [5, 6, 7],
  undone_run_count: 3,
  unreadable_runs: [],
  read_again: { files: 12, bytes: 3_400_000, rows: 1000, amounts: {} },
  watermarks: { flights: { before: "2026-05-03T00:00:00.000000Z", after: null } },
  state: { cursor: { before: '"b"', after: '"a"' } },
  consumers: { report: 7 },
  hidden_consumers: 2,
  written_twice: ["/lake/clean"],
  written_twice_unknown: [],
  files_to_clean: 0,
  outputs_to_clean: 0,
  files_left_by_undone_runs: 0,
  never_read: null,
  holder: null,
  needs_approval: false,
  stands: false,
};

const some = (more: Partial<ChangeSummary>): ChangeSummary => ({ ...summaryOf(PREVIEW), ...more });

describe("a change", () => {
  it.each<[ChangeSpec, string]>([
    [{ kind: "reset", clean: true }, "Reset the job"],
    [{ kind: "reset", clean: false, contexts: ["a", "b"] }, "Reset a, b"],
    [{ kind: "rewind", clean: false, to_run: 4 }, "Rewind to run 4"],
    [{ kind: "rewind", clean: false, to_run: 4, contexts: ["a"] }, "Rewind a to run 4"],
    [{ kind: "set", ctx: "a", value: "now" }, "Set a to now"],
    [{ kind: "undo" }, "Undo the last change"],
  ])("%j is named %s", (spec, name) => expect(actionName(spec)).toBe(name));
  it("goes on a sentence", () => expect(inSentence("Rewind to run 4")).toBe("rewind to run 4"));
});

describe("a request", () => {
  it.each([
    [{ kind: "reset", clean: true }, "Reset the job and remove the undone runs' output"],
    [{ kind: "rewind", to_run: "2", contexts: ["a"] }, "Rewind a to run 2"],
    [{ kind: "set", ctx: "a", value: "7" }, "Set a to 7"],
    [{ kind: "unprotect" }, "Unprotect the job"],
    [{ kind: "delete" }, "Delete the bookmark"],
    [{ kind: "something new" }, "something new"],
  ])("for %j is named %s", (change, name) => expect(requestName(change)).toBe(name));
  it("keeps its preview", () => {
    const { needs_approval: _, hidden_consumers: __, ...kept } = PREVIEW;
    expect(summaryOfRequest({ ...kept, undone_run_count: 3 })).toEqual({ ...summaryOf(PREVIEW), hiddenConsumers: 0 });
  });
  it("for the end of a protection has none", () => expect(summaryOfRequest({})).toBeUndefined());
  it("of many runs tells how many more there are", () => {
    const { undone, undoneCount } = summaryOfRequest({ ...PREVIEW, undone_run_count: 250 }) ?? some({});
    expect(undoneInWords({ undone, undoneCount })).toBe("250 runs: 5 to 7 and 247 more");
  });
  it("with parts that are none is read as far as it goes", () =>
    expect(summaryOfRequest({ change: "reset", version: 1, consumers: { a: "x" }, undone_runs: "all" })).toMatchObject({
      consumers: {},
      undone: [],
      files: null,
    }));
});

describe("run numbers", () => {
  it.each([
    [[], ""],
    [[4], "4"],
    [[4, 5], "4, 5"],
    [[2, 5, 6, 7, 9], "2, 5 to 7, 9"],
  ])("%j are %j", (numbers, words) => expect(inRanges(numbers)).toBe(words));
  it("end where nobody reads on", () =>
    expect(inRanges(Array.from({ length: 30 }, (_, i) => 2 * i))).toMatch(/^0, 2, .*22, \.\.\.$/));
});

describe("what is read again", () => {
  it.each([
    [{ files: 12, bytes: 3_400_000, rows: 1000 }, "12 files, 3.4 MB, 1,000 rows"],
    [{ files: 1, bytes: 10, rows: null }, "1 file, 10 B, rows not counted"],
    [{ files: null, bytes: null, rows: null }, "unknown until the source is checked"],
    [{ files: null, bytes: null, rows: null, amounts: { keys: 3 } }, "3 keys"],
    [{ files: null, bytes: null, rows: null, amounts: { keys: null } }, "an unknown number of keys"],
    [{ files: 0, bytes: 0, rows: 0 }, "nothing"],
    [{ files: 0, bytes: 0, rows: null }, "nothing"],
  ])("%j is %s", (again, words) => expect(againInWords(again)).toBe(words));
});

describe("a preview", () => {
  it("counts consumers that one may not look at", () =>
    expect(consumersInWords(some({}))).toBe("report (has read up to run 7), 2 jobs you don't have access to"));
  it("tells of none", () => expect(consumersInWords(some({ consumers: {}, hiddenConsumers: 0 }))).toBe("none"));
  it.each([
    [{}, /fails unless on_rewind/],
    [{ consumers: {} }, /fails unless on_rewind/],
    [{ consumers: {}, hiddenConsumers: 0 }, /^$/],
  ])("with %j says what consumers see of it: %s", (more, words) =>
    expect(factsOf(some(more)).find(({ label }) => label === "Consumers affected")?.note ?? "").toMatch(words),
  );
  it("tells of files to be removed, and that it is final", () =>
    expect(factsOf(some({ toClean: 3 })).find(({ label }) => label === "Removed")?.says).toBe(
      "3 files, by the next run. This can't be undone.",
    ));
  it("tells of rows to be removed from other sinks, beside files or alone", () => {
    const removed = (more: Partial<ChangeSummary>) =>
      factsOf(some(more)).find(({ label }) => label === "Removed")?.says;
    expect(removed({ sinksToClean: 1 })).toBe(
      "rows of 1 output in other sinks, by the next run. This can't be undone.",
    );
    expect(removed({ toClean: 3, sinksToClean: 2 })).toMatch(/^3 files and rows of 2 outputs in other sinks, by/);
  });
  it("tells of runs that can't be read", () =>
    expect(factsOf(some({ unreadable: ["5.6"] })).at(-1)).toEqual({
      label: "Can't be read",
      says: "5.6; not counted above",
    }));
  it("back to the beginning keeps no run", () =>
    expect(factsOf(some({ toRun: 0 }))[1]?.says).toBe("none: back to before its first run"));
});

describe("rows that would come twice", () => {
  it("are said with where and for whom", () => {
    expect(twiceInWords(["/lake/out"], [])).toContain("to /lake/out again");
    expect(twiceInWords(["/lake/out"], [])).toMatch(/Readers of that output see duplicates\.$/);
    expect(twiceInWords(["/a", "/b"], [])).toContain("to /a, /b again");
    expect(twiceTitle(["/a"], [])).toBe("This will duplicate rows");
  });
  it("name the first of very many targets", () => {
    const targets = Array.from({ length: 12 }, (_, number) => `/${number}`);
    expect(twiceInWords(targets, [])).toContain("to /0, /1, /2, /3, /4, /5, /6, /7, /8, /9 and 2 more again");
    expect(twiceInWords(targets.slice(0, 10), [])).toContain("/8, /9 again");
  });
  it("are said to be uncertain where it is not known what a table holds", () => {
    const table = "conn:dw#public.dim";
    expect(twiceTitle([table], [table])).toBe("This may duplicate rows");
    expect(twiceTitle(["/a", table], [table])).toBe("This will duplicate rows");
    expect(twiceInWords(["/a", table], [table])).toContain(
      `Whether the undone runs published to ${table} is unknown here`,
    );
    expect(twiceInWords([table], [table])).not.toContain("see duplicates");
  });
  it.each<[ChangeSpec | undefined, string]>([
    [{ kind: "reset", clean: false }, "clean"],
    [{ kind: "rewind", clean: false, to_run: 2, contexts: ["a"] }, "all contexts"],
    [{ kind: "set", ctx: "a", value: "now" }, "by hand"],
    [undefined, "by hand"],
  ])("by %j are kept away: %s", (spec, fix) => expect(fixOf(spec, true)).toBe(fix));
  it.each<ChangeSpec["kind"]>(["reset", "delete"])(
    "by a %s are kept away elsewhere where the page may not look",
    (kind) => expect(fixOf({ kind, clean: false } as ChangeSpec, false)).toBe("command line"),
  );
  it("by a request are kept away by another one", () => expect(fixOfRequest({ kind: "reset" })).toBe("ask anew"));
});

describe("an event", () => {
  const event = { who: "ada", at: null, why: null };
  it.each([
    [{ ...event, kind: "rewind", to_run: 4 }, "rewind to run 4"],
    [{ ...event, kind: "set", ctx: "a", value: "now" }, "set a to now"],
    [{ ...event, kind: "request", change: { kind: "undo" } }, "request: undo the last change"],
    [{ ...event, kind: "replay" }, "replay"],
  ])("%j is %s", (given, name) => expect(eventName(given)).toBe(name));
});

describe("what a set skips", () => {
  const NEVER = { files: 14, bytes: 1_810_000_000, amounts: {}, runs: [], consumers: [], unknown: null };
  it("is said with files and bytes", () =>
    expect(neverReadInWords(NEVER)).toMatch(
      /^What is unread up to there \(14 files, 1\.81 GB\) will be marked as read\. No run will ever/,
    ));
  it("heads with its amount, or that this is unknown", () => {
    expect(neverReadTitle(NEVER)).toBe("Never read: 14 files, 1.81 GB");
    expect(neverReadTitle({ ...NEVER, files: 1, bytes: null })).toBe("Never read: 1 file");
    expect(neverReadTitle({ ...NEVER, files: null, bytes: null })).toBe("Never read: amount unknown");
  });
  it("is said with the rows and versions of a table", () => {
    const table = { ...NEVER, files: 2, bytes: 1810, rows: 1, amounts: { versions: 1 } };
    expect(neverReadTitle(table)).toBe("Never read: 2 files, 1.81 kB, 1 row, 1 version");
    const kept = summaryOfRequest({ change: "set", version: 1, never_read: table })?.neverRead;
    expect(kept && neverReadTitle(kept)).toBe("Never read: 2 files, 1.81 kB, 1 row, 1 version");
  });
  it("is said in rows alone where a database counts them", () =>
    expect(neverReadTitle({ ...NEVER, files: null, bytes: null, rows: 3 })).toBe("Never read: 3 rows"));
  it("is said with upstream runs and the consumers that miss it", () =>
    expect(neverReadInWords({ ...NEVER, runs: [4, 5], consumers: ["report"] })).toMatch(
      /upstream runs 4, 5\..*never reach report\.$/,
    ));
  it("is not known, and never nothing, where the source can't be asked", () =>
    expect(neverReadInWords({ ...NEVER, files: null, bytes: null, unknown: "gone" })).toMatch(/is unknown \(gone\)/));
  it("is nothing where nothing is unread", () =>
    expect(summaryOf({ ...PREVIEW, never_read: { ...NEVER, files: 0, bytes: 0 } }).neverRead).toBeNull());
  it("is told of a request as well", () =>
    expect(summaryOfRequest({ change: "set", version: 1, never_read: NEVER })?.neverRead?.files).toBe(14));
  it("says what undone runs left", () =>
    expect(
      factsOf(some({ leftOver: 2 })).find(({ label }) => label === "Output left by earlier undone runs")?.says,
    ).toMatch(/^2 files/));
});
