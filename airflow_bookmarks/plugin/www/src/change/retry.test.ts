import { expect, it } from "vitest";
import { retryName, retrySpec } from "./retry";

const FILE = { ctx: "raw", path: "s3://lake/a.csv", bytes: 5, modified_at: "", run_number: 1, error: "not a CSV" };

it("one file is retried by its path, and all by a star", () => {
  expect(retrySpec({ ctx: "raw", file: FILE, count: 1 })).toEqual({
    kind: "set",
    ctx: "raw",
    value: "retry:s3://lake/a.csv",
  });
  expect(retrySpec({ ctx: "raw", file: null, count: 3 })).toEqual({ kind: "set", ctx: "raw", value: "retry:*" });
});

it("what is retried is named with its number, where that is known", () => {
  expect(retryName({ ctx: "raw", file: FILE, count: 1 })).toBe("Retry 1 file of raw");
  expect(retryName({ ctx: "raw", file: null, count: 3 })).toBe("Retry 3 files of raw");
  expect(retryName({ ctx: "raw", file: null, count: null })).toBe("Retry all files of raw");
});
