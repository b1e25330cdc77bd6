import { describe, expect, it } from "vitest";
import { factsOf, leftOutOf, phasesOf } from "./details";

describe("the time of a run", () => {
  it("is shown by part, longest first", () =>
    expect(phasesOf({ seconds: { plan: "1.000", write: "3.000" } })).toEqual([
      { name: "write", seconds: 3, share: 0.75 },
      { name: "plan", seconds: 1, share: 0.25 },
    ]));
  it("may be none at all", () => expect(phasesOf({ seconds: { plan: "0.000" } })[0]?.share).toBe(0));
});

describe("what a script left out", () => {
  it("is counted by step, under the script's own names", () =>
    expect(leftOutOf({ left_out: { after_map: { "dropped records": 1200, "error records": 1 } } })).toEqual([
      { name: "after_map", said: "dropped records: 1,200, error records: 1" },
    ]));
});

describe("facts", () => {
  it("are said in words, sizes as sizes", () =>
    expect(factsOf({ files: 1200, bytes: 2_000_000, rows: null, watermark_before: "1" })).toEqual([
      { name: "files", said: "1,200" },
      { name: "bytes", said: "2 MB" },
    ]));
  it("within facts are listed", () =>
    expect(factsOf({ skipped: { late: 2 }, upstream: { job: "clean", runs: [4, 5] } })).toEqual([
      { name: "skipped", said: "late 2" },
      { name: "upstream", said: "job clean, runs 4, 5" },
    ]));
  it("that tell histories apart are left out", () =>
    expect(
      factsOf({ fence: 3, upstream: { job: "clean", after: 3, until: 5, epoch: 1, changes: 0, replaced: 0 } }),
    ).toEqual([{ name: "upstream", said: "job clean" }]));
  it("on gaps say what is missing", () =>
    expect(
      factsOf({
        gaps: { unit: "number", missing: 4, first: "3", last: "9", ranges: ["4", "6..8"], more_ranges: 2, seen: "3" },
      }),
    ).toEqual([{ name: "gaps", said: "4 of 3 to 9 missing: 4, 6 to 8, and 2 ranges below" }]));
  it("on gaps say where there are none", () =>
    expect(factsOf({ gaps: { missing: 0, first: "3", last: "9", ranges: [] } })).toEqual([
      { name: "gaps", said: "none from 3 to 9" },
    ]));
  it("that are empty are left out", () => expect(factsOf({ skipped: {} })).toEqual([]));
});
