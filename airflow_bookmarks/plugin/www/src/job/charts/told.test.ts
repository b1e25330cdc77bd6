import { describe, expect, it } from "vitest";
import { MARKS, marksOf } from "./marks";
import type { ChartPoint } from "./points";
import { marksInWords, readout, remarkOf, unusualInWords } from "./told";

const SAY = { say: (value: number) => `${value} rows` };
const point = (number: number, more: Partial<ChartPoint> = {}): ChartPoint => ({
  key: `${number}`,
  number,
  at: null,
  value: 10 * number,
  fate: "living",
  verdict: null,
  ...more,
});
const far = { verdict: { usual: 5, isUnusual: true } };
const near = { verdict: { usual: 5, isUnusual: false } };

describe("what is unusual in words", () => {
  it("has the run, its value and the median, newest first", () =>
    expect(unusualInWords([point(1, near), point(2, far), point(3, far)], SAY)).toBe(
      "Unusual: run 3, 30 rows (median before: 5 rows); run 2, 20 rows (median before: 5 rows).",
    ));
  it("names no more than a few", () =>
    expect(
      unusualInWords(
        Array.from({ length: 7 }, (_, i) => point(i, far)),
        SAY,
      ),
    ).toMatch(/; 3 more\.$/));
  it("is also said where nothing is, or where it can't be told yet", () => {
    expect(unusualInWords([point(1, near)], SAY)).toBe("No run was unusual.");
    expect(unusualInWords([point(1)], SAY)).toContain("once 8 runs have a value");
  });
});

describe("a run in words", () => {
  it("has its value, and what is remarkable", () => {
    expect(readout(point(2), SAY)).toBe("Run 2: 20 rows");
    expect(readout(point(2, far), SAY)).toBe("Run 2: 20 rows; unusual, the median before is 5 rows");
    expect(readout(point(2, { fate: "undone" }), SAY)).toBe("Run 2: 20 rows; undone");
    expect(readout(point(2, { fate: "failed", value: null }), SAY)).toBe("Run 2: no value; failed");
    expect(readout(point(2, { value: null }), SAY)).toBe("Run 2: unknown");
  });
  it("has no remark of most runs", () => expect(remarkOf(point(1, near))).toBe(""));
});

describe("what the charts mark", () => {
  const failed = (number: number) => point(number, { fate: "failed" });
  const undone = (number: number) => point(number, { fate: "undone" });
  const change = { key: "a", at: new Date("2026-05-03T10:00:00Z"), said: "Rewound to run 1" };

  it("is said in sentences", () => {
    const said = marksInWords([failed(1), failed(1), point(1), undone(2), undone(3)], [change]);
    expect(said.slice(0, 2)).toEqual(["Failed or abandoned at least once: run 1.", "Undone: runs 2, 3."]);
    expect(said[2]).toMatch(/^Changed: Rewound to run 1 \(2026-05-03 /);
  });
  it("is nothing of runs that all count", () => expect(marksInWords([point(1)], [])).toEqual([]));
  it("has a word in the legend where it is there", () => {
    expect(marksOf([point(1), failed(2)], false)).toEqual(["run", "failed"]);
    expect(marksOf([point(1, near), undone(2), point(3, far)], true)).toEqual([
      "run",
      "unusual",
      "usual",
      "undone",
      "change",
    ]);
    expect(Object.keys(MARKS)).toHaveLength(6);
  });
});
