import { describe, expect, it } from "vitest";
import { canRewindTo, contextsOf, keyOf, newestLiving, remarks, secondsOf } from "./run";
import { sample } from "./sample";

describe("a run", () => {
  it("is told from a failed one of the same number", () =>
    expect(keyOf(sample(7, { fence: 9 }))).not.toBe(keyOf(sample(7, { fence: 8 }))));
  it("takes from its plan until it is published", () => expect(secondsOf(sample(1))).toBe(3600));
  it("has no duration before it committed", () =>
    expect(secondsOf(sample(1, { committed_at: null, published_at: null }))).toBeUndefined());
  it("never took less than nothing, whatever the clocks say", () =>
    expect(secondsOf(sample(1, { planned_at: "2027-01-01T00:00:00Z" }))).toBe(0));
  it("takes the time of its own steps where it was replayed, and not that since its first plan", () => {
    const again = { published_at: "2027-01-01T00:00:00Z", revision: 1 };
    expect(secondsOf(sample(1, { ...again, seconds: { plan: "1.500", read_write: "20.000" } }))).toBe(21.5);
    expect(secondsOf(sample(1, again))).toBeUndefined();
  });
  it("says what is out of the ordinary", () => {
    expect(remarks(sample(1))).toEqual([]);
    expect(remarks(sample(1, { attempt: 2, is_empty: true, revision: 1 }))).toEqual(["empty", "attempt 2", "replayed"]);
  });
});

it("contexts are those of all runs", () =>
  expect(contextsOf([sample(1), sample(2, { window: { b: { before: null, after: "3" } } })])).toEqual([
    "b",
    "flights",
  ]));

describe("a rewind", () => {
  const newest = newestLiving([sample(4, { state: "UNDONE" }), sample(3), sample(1)]);
  it("goes to a living run", () => expect(canRewindTo(sample(1), newest, false)).toBe(true));
  it("never to an undone one", () => expect(canRewindTo(sample(2, { state: "UNDONE" }), newest, false)).toBe(false));
  it("not to the newest one, which would change nothing", () =>
    expect(canRewindTo(sample(3), newest, false)).toBe(false));
  it("to the newest one where a context was set since", () => expect(canRewindTo(sample(3), newest, true)).toBe(true));
});
