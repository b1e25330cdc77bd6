import { describe, expect, it } from "vitest";
import { amountsOf, readWords, sumOf } from "./amount";

describe("what contexts hold", () => {
  it("is counted in files, and in what else each of them counts", () =>
    expect(amountsOf([{ files: 3 }, { unit: "rows", count: 7 }, { unit: "rows", count: 1 }])).toEqual({
      files: 3,
      amounts: { rows: 8 },
    }));
  it("of a table is no number of files", () =>
    expect(amountsOf([{ unit: "rows", count: 7 }])).toEqual({ files: null, amounts: { rows: 7 } }));
  it("is not known where one of them does not know it", () => {
    expect(amountsOf([{ unit: "rows", count: 7 }, { unit: "rows" }, { unit: "rows", count: 1 }]).amounts).toEqual({
      rows: null,
    });
    expect(sumOf([{ bytes: 1 }, {}], "bytes")).toBeNull();
  });
  it("is nothing where there is none", () => expect(amountsOf([])).toEqual({ files: 0, amounts: {} }));
});

describe("an amount in words", () => {
  it("has each of its units", () =>
    expect(readWords({ files: 3, amounts: { keys: 2, rows: null } })).toBe(
      "3 files, 2 keys, an unknown number of rows",
    ));
  it("of a table names no files", () => expect(readWords({ files: null, amounts: { keys: 2 } })).toBe("2 keys"));
  it("that nobody knows has none", () => expect(readWords({ files: null, amounts: {} })).toBeUndefined());
});
