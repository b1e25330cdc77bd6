import { expect, it } from "vitest";
import { BAR_LOOKS, lookOf, looksOf } from "./looks";

it("no two looks have the same shape, whatever their colours", () => {
  const patterns = Object.values(BAR_LOOKS).map((look) => look.pattern);
  expect(new Set(patterns).size).toBe(patterns.length);
});

it("a state that is not known looks as what can't be read", () => expect(lookOf("DAMAGED")).toBe("damaged"));

it("a legend has each look that is there once, in the order of all", () =>
  expect(looksOf(["FAILED", "PUBLISHED", "FAILED"])).toEqual(["published", "failed"]));
