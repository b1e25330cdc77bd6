import { describe, expect, it } from "vitest";
import type { Pending } from "../../api/model";
import { filesWords, firstWords, pendingWords, recordedWords, runsWords, skippedWords } from "./pending";

const PENDING: Pending = {
  job: "flights.clean",
  namespace: "test",
  looked_at: "2026-05-03T10:00:00Z",
  is_empty: false,
  is_known: true,
  unknown: null,
  files: 3,
  bytes: 1_250_000,
  contexts: [],
  due_run_number: null,
  cleaning: false,
  left_open: [],
  holder: null,
};

describe("what the next run would read", () => {
  it("is counted", () => expect(pendingWords(PENDING)).toBe("The next run would read 3 files (1.25 MB)."));
  it("may be nothing", () => expect(pendingWords({ ...PENDING, is_empty: true })).toContain("nothing new"));
  it("may be nothing, with something to finish", () =>
    expect(pendingWords({ ...PENDING, files: 0, due_run_number: 4 })).toBe("There is nothing new to read."));
  it("may be counted in another unit", () => {
    const row = { ctx: "rows", kind: "keys", source: "crm", files: null, bytes: null, oldest: null, newest: null };
    const keys = { ...row, skipped: {}, skipped_files: [], read_again: null, unknown: null, unit: "keys", count: 4 };
    expect(filesWords(keys)).toBe("4 keys");
    expect(pendingWords({ ...PENDING, files: null, contexts: [keys] })).toBe("The next run would read 4 keys.");
    expect(pendingWords({ ...PENDING, files: null, contexts: [{ ...keys, count: null }] })).toContain("unknown");
  });
  it("may be unknown, for a reason", () =>
    expect(pendingWords({ ...PENDING, is_known: false, unknown: "jdbc asks the database" })).toContain("jdbc asks"));
});

describe("what is finished first", () => {
  it("is nothing for most", () => expect(firstWords(PENDING)).toEqual([]));
  it("is all that was left", () =>
    expect(
      firstWords({ ...PENDING, cleaning: true, due_run_number: 4, left_open: ["5.6"], holder: "a/b/c" }),
    ).toHaveLength(4));
});

it("what a run recorded is not taken for what is there now", () => {
  const row = {
    ctx: "raw",
    kind: "files",
    source: "files:/raw",
    files: 2,
    bytes: 14,
    oldest: null,
    newest: null,
    skipped: {},
    skipped_files: [],
    read_again: null,
    unknown: "not looked at",
    recorded_by: 7,
    recorded_at: "2026-05-03T09:00:00Z",
  };
  const words = pendingWords({ ...PENDING, is_known: false, files: null, bytes: null, contexts: [row] });
  expect(words).toContain("what is new is unknown");
  expect(recordedWords(row)).toBe("recorded by run 7: what it left unread");
  expect(recordedWords({ recorded_by: null })).toBeUndefined();
});

it("what would be left out is counted by reason", () => {
  expect(skippedWords({ skipped: { late: 2, before_start: 1, hidden: 0 } })).toBe("2 late, 1 before start");
  expect(skippedWords({ skipped: {} })).toBeUndefined();
});

it("files that are read again are counted among the files", () => {
  expect(filesWords({ files: 1200, read_again: 3 })).toBe("1,200, 3 of them again");
  expect(filesWords({ files: 2, read_again: 0 })).toBe("2");
  expect(filesWords({ files: null, read_again: null })).toBe("unknown");
});

it("runs of an upstream are a range", () => {
  expect(runsWords([5, 4, 7])).toBe("runs 4 to 7");
  expect(runsWords([4])).toBe("run 4");
  expect(runsWords([])).toBeUndefined();
});
