import { describe, expect, it } from "vitest";
import { draw, nearest, pointAfter } from "./draw";
import type { ChartPoint } from "./points";

const HOUR_MS = 3_600_000;
const FRAME = { width: 100, height: 50 };
const at = (hours: number) => new Date(Date.UTC(2026, 4, 3) + hours * HOUR_MS);
const point = (value: number | null, more: Partial<ChartPoint> = {}): ChartPoint => ({
  key: `${value}`,
  number: 1,
  at: null,
  value,
  fate: "living",
  verdict: null,
  ...more,
});
const timed = (hours: number, value = 1) => point(value, { at: at(hours).toISOString() });
const change = (hours: number) => ({ key: `${hours}`, at: at(hours), said: "Reset" });

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
    expect(draw([], FRAME, { isByTime: true }, [change(1)]).changes).toEqual([]);
  });
  it.each([
    [7_500, [0, 3_600, 7_200]],
    [40, [0, 10, 20, 30, 40].filter((at) => at % 20 === 0)],
    [0, [0]],
  ])("marks times at steps that people count in: up to %d s", (most, marks) =>
    expect(draw([point(most)], FRAME, { isTime: true }).ticks.map((tick) => tick.value)).toEqual(marks),
  );
  it("draws its line through the runs that count now, and leaves the others beside it", () => {
    const { line, dots } = draw(
      [point(0), point(10, { fate: "undone" }), point(null, { fate: "failed" }), point(10)],
      FRAME,
    );
    expect(line).toBe("M0,50L100,0");
    expect(dots.map((dot) => dot.y)).toEqual([50, 0, undefined, 0]);
  });
  it("draws the median where it is known", () => {
    const usual = { verdict: { usual: 5, isUnusual: false } };
    expect(draw([point(10), point(10, usual), point(10, usual)], FRAME).median).toBe("M50,25L50,25L100,25");
    expect(draw([point(10)], FRAME).median).toBe("");
  });
  it("has room for a median above all values", () =>
    expect(draw([point(1, { verdict: { usual: 10, isUnusual: true } })], FRAME).median).toMatch(/^M50,0/));
});

describe("over time", () => {
  it("runs stand where they were, and not in equal steps", () =>
    expect(draw([timed(0), timed(1), timed(10)], FRAME, { isByTime: true }).dots.map((dot) => dot.x)).toEqual([
      0, 10, 100,
    ]));
  it("the axis says times", () => {
    const wide = { ...FRAME, width: 400 };
    expect(draw([timed(0), timed(10)], wide, { isByTime: true }).foot.length).toBeGreaterThan(1);
    expect(draw([timed(0)], wide, { isByTime: true }).dots[0]?.x).toBe(200);
  });
  it("changes stand at their times", () =>
    expect(draw([timed(0), timed(10)], FRAME, { isByTime: true }, [change(5), change(-1), change(99)]).changes).toEqual(
      [
        { x: 50, change: change(5) },
        { x: 100, change: change(99) },
      ],
    ));
});

describe("run by run", () => {
  it("changes stand between the runs before and after them", () =>
    expect(draw([timed(0), timed(1), timed(9)], FRAME, {}, [change(2)]).changes).toEqual([
      { x: 75, change: change(2) },
    ]));
  it("changes before the first run belong to runs that are not shown", () =>
    expect(draw([timed(0), timed(1)], FRAME, {}, [change(-1)]).changes).toEqual([]));
  it("the axis says the first and the last run", () =>
    expect(draw([timed(0), timed(1)], FRAME).foot.map(({ x }) => x)).toEqual([0, 100]));
});

it.each([
  ["ArrowRight", 0, 1],
  ["ArrowLeft", 0, 0],
  ["End", 0, 4],
  ["Tab", 0, undefined],
])("the key %s on point %d of 5 leads to %s", (key, at, next) => expect(pointAfter(key, at, 5)).toBe(next));

it("the pointer finds the nearest point", () => expect(nearest([{ x: 0 }, { x: 50 }, { x: 100 }], 70)).toBe(1));
