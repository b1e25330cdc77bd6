import { expect, it } from "vitest";
import type { PendingRow } from "../../api/model";
import { leftOut, moreWords } from "./leftOut";

const FILE = { ctx: "raw", reason: "late", path: "/raw/a.csv", bytes: 5, modified_at: "2013-01-31T09:00:00Z" };

function row(ctx: string, skipped: PendingRow["skipped"], skipped_files: PendingRow["skipped_files"] = []): PendingRow {
  const nothing = { files: 0, bytes: 0, oldest: null, newest: null, read_again: null, unknown: null };
  return { ctx, kind: "files", source: "files:/raw", ...nothing, skipped, skipped_files };
}

it("what is left out is told by context and reason, the most first", () => {
  const raw = row("raw", { late: 2, hidden: 0, over_bound: 30 }, [FILE]);

  const told = leftOut([raw, row("more", { settling: 1 })]);

  expect(told.map(({ ctx, reason, count }) => [ctx, reason, count])).toEqual([
    ["raw", "over_bound", 30],
    ["raw", "late", 2],
    ["more", "settling", 1],
  ]);
  expect(told.map(({ examples }) => examples)).toEqual([[], [FILE], []]);
  expect(told.map(moreWords)).toEqual([undefined, "and 1 more", undefined]);
});

it("a reason of a later version is told without its meaning", () => {
  expect(leftOut([row("raw", { unheard_of: 1 })])[0]?.meaning).toBeUndefined();
});
