import { expect, it } from "vitest";
import { markWords, timeOfMark } from "./mark";

const TIME = "2026-05-03T10:00:00.000000Z";

it("a watermark is a time where its order says so", () =>
  expect(timeOfMark(TIME, "time")?.getTime()).toBe(Date.UTC(2026, 4, 3, 10)));

it.each(["path", "text", "local_time", "number", "offsets"])("is shown as it is by the order %s", (order) => {
  expect(timeOfMark(TIME, order)).toBeUndefined();
  expect(markWords(TIME, order)).toBe(TIME);
});

it("is shown as it looks where no order is known", () => {
  expect(timeOfMark(TIME, null)).toBeDefined();
  expect(markWords("41", undefined)).toBe("41");
});
