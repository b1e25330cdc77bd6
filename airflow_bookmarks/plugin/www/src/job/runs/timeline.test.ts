import { describe, expect, it } from "vitest";
import { sample } from "./sample";
import { axisOf, barsOf, newestEnd, rowAfter, sentence, timeLabel } from "./timeline";

const upstream = (number: number, before: string | null, after: string | null) =>
  sample(number, { window: { up: { before, after } }, order: { up: "number" } });

const of = (order: string | null, ...marks: string[]) =>
  marks
    .map((after, number) => sample(number, { window: { in: { before: null, after } }, order: { in: order } }))
    .reverse();

describe("the axis", () => {
  it("is one of time where the order is that of times", () => {
    const axis = axisOf([sample(4), sample(2)], "flights");
    expect(axis?.kind).toBe("time");
    expect(axis?.at("2026-05-03T01:00:00.000Z")).toBe(0);
    expect(axis?.at("2026-05-03T04:00:00.000Z")).toBe(1);
    expect(axis?.ticks.length).toBeGreaterThan(2);
  });
  it("says days of a long time, and the time of day of a short one", () => {
    const noon = new Date("2026-05-03T12:30:15Z");
    expect(timeLabel(noon, 30 * 86_400_000)).toBe("2026-05-03");
    expect(timeLabel(noon, 86_400_000)).toBe("12:30");
    expect(timeLabel(noon, 60_000)).toBe("12:30:15");
    expect(timeLabel(new Date("2026-05-03T00:00:00Z"), 86_400_000)).toBe("2026-05-03");
  });
  it("has its marks at the midnights of the zone", () => {
    const window = { flights: { before: "2026-05-01T00:00:00Z", after: "2026-05-09T00:00:00Z" } };
    const axis = axisOf([sample(1, { window })], "flights", "Asia/Kolkata");
    const tick = axis?.ticks.find(({ label }) => label === "2026-05-03");
    expect(tick?.at).toBeCloseTo(axis?.at("2026-05-02T18:30:00Z") ?? Number.NaN);
  });
  it("says each of its marks once", () => {
    const window = { flights: { before: "2026-05-01T00:00:00Z", after: "2026-05-04T12:00:00Z" } };
    const labels = axisOf([sample(1, { window })], "flights")?.ticks.map((tick) => tick.label) ?? [];
    expect(labels.length).toBeGreaterThan(2);
    expect(labels).toEqual([...new Set(labels)]);
  });
  it("is linear where they are runs of an upstream, and marks whole runs alone", () => {
    const axis = axisOf([upstream(2, "1", "3"), upstream(1, null, "1")], "up");
    expect(axis?.kind).toBe("number");
    expect(axis?.at("2")).toBe(0.5);
    expect(axis?.ticks.map((tick) => tick.label)).toEqual(["1", "2", "3"]);
  });
  it("compares numbers as numbers, with a fraction or without", () => {
    const axis = axisOf(of("number", "9", "10", "9.25"), "in");
    expect(axis?.kind).toBe("number");
    expect([axis?.at("9"), axis?.at("9.25"), axis?.at("10")]).toEqual([0, 0.25, 1]);
    expect(axis?.ticks.map((tick) => tick.label)).toContain("9.2");
  });
  it("says times without a zone as they are", () => {
    const axis = axisOf(of("local_time", "2026-05-01", "2026-05-02T12:00:00.000000", "2026-05-04"), "in");
    expect(axis?.kind).toBe("local_time");
    expect(axis?.at("2026-05-02T12:00:00.000000")).toBe(0.5);
    expect(axis?.ticks.map((tick) => tick.label)).toContain("12:00");
  });
  it.each([
    ["path", ["10", "9"]],
    ["path", ["2026-05-03T01:00:00Z", "2026-05-03T00:00:00Z"]],
    ["text", ["b|7", "a|9"]],
    ["offsets", ["0:7,1:9", "0:8,1:9"]],
  ])("keeps the order of the runs where it is that of a %s", (order, [first = "", last = ""]) => {
    const axis = axisOf(of(order, first, last), "in");
    expect(axis?.kind).toBe("order");
    expect([axis?.at(first), axis?.at(last)]).toEqual([0, 1]);
  });
  it("keeps the order of the runs where a column changed its type", () => {
    const runs = [...of("time", "2026-05-03T00:00:00Z"), ...of("number", "7")];
    expect(axisOf(runs, "in")?.kind).toBe("order");
  });
  it.each(["7", "2026-05-03T00:00:00Z"])("does not guess from %s where no order is known", (mark) =>
    expect(axisOf(of(null, mark), "in")?.kind).toBe("unknown"),
  );
  it("measures runs of before orders were stored by the order that later ones have", () => {
    const runs = [...of("number", "10"), ...of(null, "9")];
    expect(axisOf(runs, "in")?.kind).toBe("number");
    expect(axisOf([...runs, ...of(null, "part-a")], "in")?.kind).toBe("order");
  });
  it("puts a watermark that is alone in the middle", () =>
    expect(axisOf([upstream(1, null, "4")], "up")?.at("4")).toBe(0.5));
  it("is missing where nothing was read", () => {
    expect(axisOf([upstream(1, null, null)], "up")).toBeUndefined();
    expect(axisOf([sample(1)], "no such context")).toBeUndefined();
  });
});

describe("a row of the timeline", () => {
  const runs = [
    sample(3, { state: "FAILED", fence: 4, window: { flights: { before: "2026-05-03T02:00:00Z", after: null } } }),
    sample(2, { attempt: 2, published_at: "2026-05-03T06:00:00Z" }),
    sample(1, { window: { flights: { before: null, after: "2026-05-03T01:00:00Z" } } }),
  ];
  const [failed, retried, first] = barsOf(runs, "flights", axisOf(runs, "flights"));

  it("covers the window that was read", () => expect([retried?.from, retried?.to]).toEqual([0, 1]));
  it("is open at the beginning of all", () => expect(first?.from).toBeUndefined());
  it("is open where a run did not commit", () => {
    expect(failed?.look).toBe("failed");
    expect(failed?.from).toBe(1);
    expect(failed?.to).toBeUndefined();
  });
  it("begins where the run before it ended, where a run did not commit", () => {
    const lost = [sample(4, { state: "ABANDONED", epoch: 2, window: {} }), sample(3, { state: "UNDONE" }), sample(2)];
    const axis = axisOf(lost, "flights");
    expect(barsOf(lost, "flights", axis)[0]?.from).toBe(axis?.at("2026-05-03T02:00:00Z"));
  });
  it("says a retry", () => expect(retried?.remarks).toEqual(["attempt 2"]));
  it("has its duration as a part of the longest one", () => expect([retried?.share, first?.share]).toEqual([1, 0.5]));
  it.each(["DAMAGED", "SLEEPY", "constructor"])("says of a state that is not known that it is damaged: %s", (state) =>
    expect(barsOf([sample(1, { state, window: {} })], "flights", undefined)[0]?.look).toBe("damaged"),
  );
  it("has no measure for an order that is not known", () =>
    expect(axisOf(of("toString", "a", "b"), "in")?.kind).toBe("order"));
});

it("a run is said in one sentence", () => {
  const said = sentence(upstream(2, null, "3"), "up");
  expect(said).toMatch(/^Run 2: published, from the beginning to 3, took 1 h, committed 2026-05-0/);
});

describe("the keyboard", () => {
  it.each([
    ["ArrowDown", 0, 1],
    ["ArrowDown", 2, 2],
    ["ArrowUp", 0, 0],
    ["Home", 2, 0],
    ["End", 0, 2],
    ["a", 1, undefined],
  ])("%s on row %d of 3 leads to %s", (key, row, next) => expect(rowAfter(key, row, 3)).toBe(next));
});

describe("the newest run", () => {
  it("is where the timeline opens: at the end of its window", () =>
    expect(
      newestEnd([
        { from: undefined, to: undefined },
        { from: 0.5, to: 0.9 },
        { from: 0, to: 0.5 },
      ]),
    ).toBe(0.9));
  it("that did not commit has no end, and begins somewhere", () =>
    expect(newestEnd([{ from: 0.7, to: undefined }])).toBe(0.7));
  it("without a window leaves the timeline where it begins", () => expect(newestEnd([])).toBe(0));
});
