import { expect, it } from "vitest";
import { isStale } from "./shown";

const NOW = new Date("2026-05-03T10:00:00Z");
const answer = (secondsAgo: number, more: { isError?: boolean; failureCount?: number } = {}) => ({
  dataUpdatedAt: NOW.getTime() - secondsAgo * 1000,
  isError: false,
  failureCount: 0,
  ...more,
});

it.each([
  [answer(61, { isError: true }), true],
  [answer(61, { failureCount: 1 }), true],
  [answer(60, { isError: true }), false],
  [answer(3600), false], // nobody looked
  [{ dataUpdatedAt: 0, isError: true, failureCount: 3 }, false], // there is nothing to be old
])("of %j it is %s that it is out of date", (shown, is) => expect(isStale(shown, NOW)).toBe(is));
