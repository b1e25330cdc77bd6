import { describe, expect, it } from "vitest";
import type { RunRow } from "../../api/model";
import { sample } from "../runs/sample";
import { type ChartPoint, draw, lagOf, measuresOf, nearest, pointAfter, pointsOf } from "./charts";

const point = (value: number | null, number = 1): ChartPoint => ({ key: `${number}`, number, at: null, value });
const ROWS = { id: "rows", title: "Rows", hint: "", value: (run: RunRow) => run.rows ?? null, say: String };
const FRAME = { width: 100, height: 50 };

describe("the points of a chart", () => {
  it("are the runs that count now, oldest first", () => {
    const runs = [sample(4, { state: "FAILED" }), sample(3), sample(2, { state: "UNDONE" }), sample(1)];
    expect(pointsOf(runs, ROWS).map((each) => [each.number, each.value])).toEqual([
      [1, 10],
      [3, 30],
    ]);
  });
  it("have no value where rows were not counted", () =>
    expect(pointsOf([sample(1, { rows: null })], ROWS)[0]?.value).toBeNull());
});

describe("lag", () => {
  it("is how old the newest data was at the commit", () => expect(lagOf(sample(1), "flights")).toBe(3 * 3600));
  it("is not known where the watermark is no time by its order", () => {
    expect(lagOf(sample(1, { order: { flights: "path" } }), "flights")).toBeNull();
    expect(lagOf(sample(1, { order: { flights: null } }), "flights")).toBeNull();
    expect(lagOf(sample(1, { order: {} }), "flights")).toBeNull();
    expect(lagOf(sample(1, { committed_at: null }), "flights")).toBeNull();
  });
  it("is charted for a context alone", () => {
    expect(measuresOf(undefined, []).map((each) => each.id)).toEqual(["rows", "bytes", "files"]);
    expect(measuresOf("flights", []).map((each) => each.id)).toContain("lag");
  });
});

describe("what is charted", () => {
  const table = sample(1, { rows: null, files: null, bytes: null, amounts: { rows: 7 } });
  const queue = sample(2, { rows: null, files: null, bytes: null, amounts: { messages: 4 } });

  it("are the rows of a table by its plan, and no files", () => {
    const measures = measuresOf(undefined, [table]);
    expect(measures.map((each) => each.id)).toEqual(["rows"]);
    expect(pointsOf([table], measures[0] ?? ROWS)[0]?.value).toBe(7);
  });
  it("has what another kind of source counts by its name", () => {
    const measures = measuresOf(undefined, [queue, sample(1)]);
    expect(measures.map((each) => each.title)).toEqual(["Rows read", "Bytes read", "Files read", "Messages read"]);
    expect(measures.map((each) => each.value(queue))).toEqual([null, null, null, 4]);
  });
});

describe("a chart", () => {
  it("starts at zero and ends at its frame", () => {
    const { dots, ticks } = draw([point(0), point(10)], FRAME);
    expect(dots).toEqual([
      { x: 0, y: 50 },
      { x: 100, y: 0 },
    ]);
    expect(ticks[0]?.value).toBe(0);
  });
  it("leaves a gap where a value is not known", () => {
    const { line, dots } = draw([point(1), point(null), point(2)], FRAME);
    expect(dots[1]?.y).toBeUndefined();
    expect(line.match(/M/g)).toHaveLength(2);
  });
  it("puts one point in the middle", () => expect(draw([point(4)], FRAME).dots[0]?.x).toBe(50));
  it("can be drawn of nothing but zeros, and of nothing", () => {
    expect(draw([point(0)], FRAME).dots[0]?.y).toBe(50);
    expect(draw([], FRAME).line).toBe("");
  });
  it.each([
    [7_500, [0, 3_600, 7_200]],
    [40, [0, 10, 20, 30, 40].filter((at) => at % 20 === 0)],
    [0, [0]],
  ])("marks times at steps that people count in: up to %d s", (most, marks) =>
    expect(draw([point(most)], FRAME, true).ticks.map((tick) => tick.value)).toEqual(marks),
  );
});

it.each([
  ["ArrowRight", 0, 1],
  ["ArrowLeft", 0, 0],
  ["End", 0, 4],
  ["Tab", 0, undefined],
])("the key %s on point %d of 5 leads to %s", (key, at, next) => expect(pointAfter(key, at, 5)).toBe(next));

it("the pointer finds the nearest point", () => expect(nearest([{ x: 0 }, { x: 50 }, { x: 100 }], 70)).toBe(1));
