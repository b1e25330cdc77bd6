import { describe, expect, it } from "vitest";
import type { EventRow, RunRow } from "../../api/model";
import { sample } from "../runs/sample";
import type { Measure } from "./measures";
import { changesOf, pointsOf } from "./points";

const ROWS: Measure = { id: "rows", title: "Rows", hint: "", value: (run: RunRow) => run.rows ?? null, say: String };
const event = (kind: string, at: string, more: Partial<EventRow> = {}): EventRow => ({
  kind,
  who: "ada",
  at,
  why: "wrong",
  ...more,
});

describe("the points of a chart", () => {
  it("are the runs that have ended, oldest first, by what became of them", () => {
    const runs = [
      sample(5, { state: "PLANNED" }),
      sample(4, { state: "FAILED" }),
      sample(3),
      sample(2, { state: "UNDONE" }),
      sample(1, { state: "ABANDONED" }),
    ];
    expect(pointsOf(runs, ROWS).map(({ number, value, fate }) => [number, value, fate])).toEqual([
      [1, null, "failed"],
      [2, 20, "undone"],
      [3, 30, "living"],
      [4, null, "failed"],
    ]);
  });
  it("have no value where rows were not counted", () =>
    expect(pointsOf([sample(1, { rows: null })], ROWS)[0]?.value).toBeNull());
  it("of an axis of times are those with a time", () => {
    const runs = [sample(2, { committed_at: null, planned_at: null }), sample(1, { committed_at: null })];
    expect(pointsOf(runs, { ...ROWS, isByTime: true }).map(({ number, at }) => [number, at])).toEqual([
      [1, sample(1).planned_at],
    ]);
  });
});

describe("a run is compared", () => {
  const like = (number: number, more: Partial<RunRow> = {}) => sample(number, { rows: 100, ...more });
  const before = [8, 7, 6, 5, 4, 3, 2, 1].map((number) => like(number));
  const newest = (run: RunRow, older: RunRow[] = before) => pointsOf([run, ...older], ROWS).at(-1)?.verdict;

  it("with those before it that count now", () => {
    expect(newest(like(9, { rows: 900 }))).toEqual({ usual: 100, isUnusual: true });
    const undone = before.map((run) => ({ ...run, state: "UNDONE" }));
    expect(newest(like(9, { rows: 900 }), undone)).toBeNull();
  });
  it("with no empty ones, and an empty one with none", () => {
    expect(newest(like(9, { rows: 0, is_empty: true }))).toBeNull();
    expect(newest(like(9), [like(10, { rows: 0, is_empty: true }), ...before])).toEqual({
      usual: 100,
      isUnusual: false,
    });
  });
  it("also if it is empty, where empty runs have a value like any other", () =>
    expect(
      pointsOf([like(9, { rows: 900, is_empty: true }), ...before], { ...ROWS, hasEmpty: true }).at(-1)?.verdict,
    ).toEqual({ usual: 100, isUnusual: true }));
});

describe("changes", () => {
  it("are those that move a bookmark, oldest first, in words", () =>
    expect(
      changesOf([
        event("rewind", "2026-05-03T12:00:00Z", { to_run: 4 }),
        event("share", "2026-05-03T11:00:00Z"),
        event("reset", "2026-05-03T10:00:00Z"),
      ]).map(({ said }) => said),
    ).toEqual(["Reset to before its first run", "Rewound to run 4"]));
  it("without a time have no place", () => expect(changesOf([{ ...event("reset", ""), at: null }])).toEqual([]));
});
