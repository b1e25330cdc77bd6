import { afterEach, describe, expect, it, vi } from "vitest";
import { markWords } from "./mark";
import { inZone } from "./time";
import { currentZone, momentOf, onZoneChange, zoneLabel, zoneOf } from "./zone";

const SUMMER = new Date("2026-07-03T10:00:00Z");

function chosen(stored: string | null) {
  vi.stubGlobal("window", Object.assign(new EventTarget(), { localStorage: { getItem: () => stored } }));
}

afterEach(() => vi.unstubAllGlobals());

describe("the zone of the page", () => {
  it.each([
    ['"Europe/Berlin"', "Europe/Berlin"],
    ['"UTC"', "UTC"],
    [null, "Asia/Tokyo"],
    ["Europe/Berlin", "UTC"],
    ['"Middle-earth/Shire"', "UTC"],
    ['""', "UTC"],
    ["7", "UTC"],
    ["null", "UTC"],
  ])("stored as %s is %s", (stored, zone) => expect(zoneOf(stored, "Asia/Tokyo")).toBe(zone));

  it("is UTC where the browser's own is not known", () => expect(zoneOf(null, "Etc/Unknown")).toBe("UTC"));

  it("is the one chosen in Airflow, and follows another choice", () => {
    chosen('"Europe/Berlin"');
    expect([currentZone(), inZone(SUMMER)]).toEqual(["Europe/Berlin", "2026-07-03 12:00:00 +02:00"]);
    chosen('"America/New_York"');
    expect([currentZone(), inZone(SUMMER)]).toEqual(["America/New_York", "2026-07-03 06:00:00 -04:00"]);
    chosen("{");
    expect([currentZone(), inZone(SUMMER)]).toEqual(["UTC", "2026-07-03 10:00:00 UTC"]);
  });

  it("is the browser's where it may not be read", () => {
    const window = new EventTarget();
    Object.defineProperty(window, "localStorage", {
      get: () => {
        throw new DOMException("denied", "SecurityError");
      },
    });
    vi.stubGlobal("window", window);
    expect(currentZone()).toBe(zoneOf(null, Intl.DateTimeFormat().resolvedOptions().timeZone));
  });

  it.each(["storage", "local-storage", "focus", "visibilitychange"])("is looked at anew on %s", (change) => {
    chosen(null);
    const listener = vi.fn();
    const end = onZoneChange(listener);
    window.dispatchEvent(new Event(change));
    end();
    window.dispatchEvent(new Event(change));
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it("is that of watermarks as well", () => {
    chosen('"Asia/Kolkata"');
    expect(markWords("2026-05-03T10:00:00.000000Z", "time")).toBe("2026-05-03 15:30:00 +05:30");
  });
});

describe("a time in a zone", () => {
  it.each([
    ["2026-01-03T10:00:00Z", "2026-01-03 10:00:00 +00:00"],
    ["2026-07-03T10:00:00Z", "2026-07-03 11:00:00 +01:00"],
    ["1800-01-01T00:00:00Z", "1799-12-31 23:58:45 -00:01"],
  ])("%s is %s in London", (at, said) => expect(inZone(new Date(at), "Europe/London")).toBe(said));

  it("is labelled by the offset of that moment", () => expect(zoneLabel(SUMMER, "Etc/UTC")).toBe("UTC"));

  it.each([
    ["2026-07-03T12:00:00Z", "2026-07-03T10:00:00.000Z"],
    ["2026-10-25T02:30:00Z", "2026-10-25T00:30:00.000Z"], // twice: the earlier one
    ["2026-03-29T02:30:00Z", undefined], // never
    ["2026-03-29T03:00:00Z", "2026-03-29T01:00:00.000Z"],
  ])("that clocks in Berlin read as %s is %s", (wall, at) =>
    expect(momentOf(new Date(wall), "Europe/Berlin")?.toISOString()).toBe(at),
  );
});
