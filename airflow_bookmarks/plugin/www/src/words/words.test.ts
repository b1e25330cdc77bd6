import { describe, expect, it } from "vitest";
import { count, inBytes, inFull } from "./number";
import { ago, agoOrAhead, duration, timeOf, timesInZone } from "./time";

describe("numbers", () => {
  it("have separators", () => expect(inFull(1234567)).toBe("1,234,567"));
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1 kB"],
    [1250000, "1.25 MB"],
    [999_999, "1 MB"],
    [100_000_000, "100 MB"],
    [5e18, "5,000 PB"],
  ])("of bytes: %d is %s", (bytes, text) => expect(inBytes(bytes)).toBe(text));
  it("count one and many", () => expect([count(1, "file"), count(2, "file")]).toEqual(["1 file", "2 files"]));
});

describe("times", () => {
  it.each([
    [0, "0 ms"],
    [0.25, "250 ms"],
    [59.7, "1 min"],
    [61, "1 min 1 s"],
    [7500, "2 h 5 min"],
    [86_400, "1 d"],
    [90_061, "1 d 1 h"],
  ])("last: %d s is %s", (seconds, text) => expect(duration(seconds)).toBe(text));
  const now = new Date("2026-05-03T10:00:00Z");
  it.each([
    ["2026-05-03T09:57:00Z", "3 min ago", "3 min ago"],
    ["2026-05-03T09:59:59Z", "1 s ago", "1 s ago"],
    ["2026-05-03T10:00:00Z", "just now", "just now"],
    ["2026-05-03T10:00:05Z", "just now", "in 5 s"],
    ["2026-05-03T10:02:00Z", "just now", "in 2 min"],
  ])("of %s: what happened was %s, what may lie ahead is %s", (at, behind, ahead) =>
    expect([ago(new Date(at), now), agoOrAhead(new Date(at), now)]).toEqual([behind, ahead]),
  );
  it.each([
    [
      "the newest is of 2026-05-03T10:00:00.000000Z, since run 4",
      "the newest is of 2026-05-03 12:00:00 +02:00, since run 4",
    ],
    ["2026-05-03T10:00:00+00:00", "2026-05-03 12:00:00 +02:00"],
    ["by scheduled__2026-05-03T10:00:00Z", "by scheduled__2026-05-03T10:00:00Z"],
    ["below /lake/at=2026-05-03T10:00:00Z/", "below /lake/at=2026-05-03T10:00:00Z/"],
    ["retry:/lake/of-2026-05-03T10:00:00Z.csv", "retry:/lake/of-2026-05-03T10:00:00Z.csv"],
    ["2026-05-03T10:00:00", "2026-05-03T10:00:00"],
    ["retry:*", "retry:*"],
  ])("in a text are said in a zone, names are not: %s", (text, said) =>
    expect(timesInZone(text, "Europe/Berlin")).toBe(said),
  );
  it("are told from watermarks that are none", () => {
    expect(timeOf("2026-05-03T10:00:00.000Z")?.getTime()).toBe(Date.UTC(2026, 4, 3, 10));
    expect(timeOf("41")).toBeUndefined();
    expect(timeOf(null)).toBeUndefined();
  });
});
