import { describe, expect, it } from "vitest";
import { judge, LEAST_BEFORE } from "./unusual";

const USUAL = [100, 104, 96, 101, 99, 103, 97, 100];
const last = (...values: (number | null)[]) => judge(values).at(-1);

describe("what is unusual", () => {
  it("is far above or far below the runs before", () => {
    expect(last(...USUAL, 400)).toEqual({ usual: 100, isUnusual: true });
    expect(last(...USUAL, 0)?.isUnusual).toBe(true);
  });
  it("is not what lies among them", () => expect(last(...USUAL, 105)?.isUnusual).toBe(false));
  it("can't be told of the first runs", () => {
    expect(judge(USUAL)).toEqual(USUAL.map(() => null));
    expect(last(...USUAL.slice(1), 400)).toBeNull();
    expect(USUAL).toHaveLength(LEAST_BEFORE);
  });
  it("can't be told of what is not known, which counts for no other either", () => {
    expect(last(...USUAL, null)).toBeNull();
    expect(last(...USUAL.slice(1), null, null, 400)).toBeNull();
  });
  it("stays unusual after others that were: the median does not follow them", () =>
    expect(last(...USUAL, 400, 420, 400)?.isUnusual).toBe(true));
  it("becomes usual once most runs are so", () =>
    expect(last(...USUAL, ...Array(9).fill(400), 400)?.isUnusual).toBe(false));
  it("is compared with the newest runs alone, so that old ones don't count", () =>
    expect(last(...Array(40).fill(5), ...Array(30).fill(100), 100)).toEqual({ usual: 100, isUnusual: false }));
  it("is no small difference, even where all runs before are alike", () => {
    expect(last(...Array(8).fill(1000), 1001)?.isUnusual).toBe(false);
    expect(last(...Array(8).fill(1000), 1200)?.isUnusual).toBe(true);
  });
  it("is no more than three of the least that counts away", () => {
    const ones = (value: number) => judge([...Array(8).fill(1), value], 1).at(-1)?.isUnusual;
    expect([ones(2), ones(4), ones(5)]).toEqual([false, false, true]);
  });
});
