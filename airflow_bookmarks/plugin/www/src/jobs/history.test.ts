import { describe, expect, it } from "vitest";
import type { RunPoint } from "../api/model";
import { barsOf, runInWords, sentenceOf } from "./history";

function run(number: number, more: Partial<RunPoint> = {}): RunPoint {
  return {
    number,
    state: "PUBLISHED",
    at: "2026-05-03T10:00:00.000Z",
    files: 0,
    bytes: 0,
    rows: null,
    amounts: {},
    ...more,
  };
}

const heights = (runs: RunPoint[]) => barsOf(runs, 20).map((bar) => bar.height);

describe("bars", () => {
  it("rise with the files that were read", () =>
    expect(heights([run(1, { files: 5 }), run(2, { files: 10 })])).toEqual([10, 20]));
  it("rise with the rows where all runs counted them", () =>
    expect(heights([run(1, { files: 9, rows: 10 }), run(2, { files: 1, rows: 40 }), run(3)])).toEqual([5, 20, 1]));
  it("rise with the files where one run did not count its rows", () =>
    expect(heights([run(1, { files: 2, rows: 1000 }), run(2, { files: 4 })])).toEqual([10, 20]));
  it("can be seen however small, and lie on the ground where nothing was read", () =>
    expect(heights([run(1, { files: 1 }), run(2, { files: 10_000 }), run(3)])).toEqual([3, 20, 1]));
  it("stay on the ground where no run read anything", () => expect(heights([run(1), run(2)])).toEqual([1, 1]));
  it("stand out where the run did not commit, whatever it read", () =>
    expect(heights([run(1, { files: 4 }), run(2, { state: "FAILED" })])).toEqual([20, 10]));
  it("look as what became of the run", () =>
    expect(
      barsOf([run(1), run(2, { state: "FAILED" }), run(3, { state: "UNDONE" })], 20).map((bar) => bar.look),
    ).toEqual(["published", "failed", "undone"]));
  it("rise with what else the source counts where nothing is counted in files", () => {
    const table = { files: null, bytes: null };
    expect(heights([run(1, { ...table, amounts: { keys: 5 } }), run(2, { ...table, amounts: { keys: 10 } })])).toEqual([
      10, 20,
    ]);
  });
});

describe("runs in words", () => {
  it("count, and tell of the last", () =>
    expect(sentenceOf([run(1), run(2, { state: "FAILED" }), run(2, { files: 4 })])).toBe(
      "3 runs, the last read 4 files; 1 failed",
    ));
  it.each([
    [[], "no runs"],
    [[run(1)], "1 run, the last read nothing"],
    [[run(1, { rows: 1200 })], "1 run, the last read 1,200 rows"],
    [[run(1, { state: "FAILED" })], "1 run, the last did not commit; 1 failed"],
    [[run(1, { state: "UNDONE" }), run(2)], "2 runs, the last read nothing; 1 undone"],
    [[run(1, { files: null, amounts: { keys: 12 } })], "1 run, the last read 12 keys"],
    [[run(1, { files: null, amounts: { keys: null } })], "1 run, the last read an unknown number of keys"],
    [[run(1, { files: null })], "1 run, the last read an unknown amount"],
  ])("%#", (runs, text) => expect(sentenceOf(runs)).toBe(text));
  it("of one run say its state and sizes", () =>
    expect(runInWords(run(7, { files: 4, bytes: 1200 }))).toMatch(
      /^run 7, PUBLISHED, read 4 files, 1.2 kB, 2026-05-0/,
    ));
});
