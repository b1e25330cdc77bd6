import { expect, it } from "vitest";
import type { JobRow } from "../api/model";
import {
  isAllSelected,
  lackOfSelection,
  MOST_JOBS,
  NONE,
  selectionInWords,
  selectionWith,
  selectionWithout,
} from "./selection";

const row = (job: string): JobRow => ({ job, namespace: "page", state: "IDLE", order: {} }) as JobRow;
const [A, B, C] = ["a", "b", "c"].map(row) as [JobRow, JobRow, JobRow];

it("a job is put in and taken out, and the others stay", () => {
  const both = selectionWith(NONE, [A, B], true);
  expect([...both.keys()]).toEqual(["a", "b"]);
  expect([...selectionWith(both, [A], false).keys()]).toEqual(["b"]);
  expect([...selectionWithout(both, ["b", "x"]).keys()]).toEqual(["a"]);
});

it("what is selected on another page is counted and said", () => {
  const both = selectionWith(NONE, [A, B], true);
  expect(selectionInWords(both, [A, B, C])).toBe("2 jobs selected");
  expect(selectionInWords(both, [C, B])).toBe("2 jobs selected, 1 not on this page");
  expect(selectionInWords(NONE, [A])).toBe("");
});

it("the box of all says whether all, some or none of the page are selected", () => {
  const one = selectionWith(NONE, [A], true);
  expect(isAllSelected(one, [A])).toBe(true);
  expect(isAllSelected(one, [A, B])).toBe("indeterminate");
  expect(isAllSelected(one, [B])).toBe(false);
  expect(isAllSelected(NONE, [])).toBe(false);
});

it("more jobs than a person can check are not changed together", () => {
  const rows = Array.from({ length: MOST_JOBS + 1 }, (_, number) => row(`${number}`));
  expect(lackOfSelection(selectionWith(NONE, rows.slice(1), true))).toBeUndefined();
  expect(lackOfSelection(selectionWith(NONE, rows, true))).toBe(
    "At most 100 jobs can be changed together: clear some.",
  );
});
