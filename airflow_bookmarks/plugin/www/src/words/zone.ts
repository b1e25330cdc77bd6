import { useSyncExternalStore } from "react";

// Where Airflow's own pages keep the zone that a person has chosen there: the name of a zone, as JSON. Without a choice
// they take the zone of the browser.
const KEY = "timezone";
const UTC = "UTC";
// A change in another tab, the event by which Airflow's own pages learn of a change in this one, and what comes before a
// person looks again, should both have been missed.
const CHANGES = ["storage", "local-storage", "focus", "visibilitychange"];
const DAY_MS = 86_400_000;

const formats = new Map<string, Intl.DateTimeFormat | undefined>();
let read: { stored: string | null; zone: string } | undefined;

/** Return the zone that a stored choice names: that of the browser without one, and UTC for what is none. */
export function zoneOf(stored: string | null, browsers: string): string {
  const name = stored === null ? browsers : parsed(stored);
  return typeof name === "string" && formatOf(name) !== undefined ? name : UTC;
}

function parsed(stored: string): unknown {
  try {
    return JSON.parse(stored);
  } catch {
    return undefined; // not as Airflow writes it
  }
}

/** Return the zone in which the page shows times: the one that the person has chosen in Airflow. */
export function currentZone(): string {
  const stored = storedZone();
  if (read?.stored !== stored || read === undefined) {
    read = { stored, zone: zoneOf(stored, Intl.DateTimeFormat().resolvedOptions().timeZone) };
  }
  return read.zone;
}

function storedZone(): string | null {
  try {
    return typeof window === "undefined" ? null : window.localStorage.getItem(KEY);
  } catch {
    return null; // a browser may forbid it: Airflow then has no choice either
  }
}

/** Return the zone in which the page shows times, and draw the component anew when another one is chosen. */
export function useZone(): string {
  return useSyncExternalStore(onZoneChange, currentZone);
}

export function onZoneChange(listener: () => void): () => void {
  for (const change of CHANGES) window.addEventListener(change, listener);
  return () => {
    for (const change of CHANGES) window.removeEventListener(change, listener);
  };
}

/** Return a time of UTC that reads like the clocks of a zone at that moment. */
export function wallTime(at: Date, zone: string): Date {
  return new Date(at.getTime() + offsetOf(at, zone));
}

/**
 * Return the moment at which the clocks of a zone read like a time of UTC; undefined where they skip it.
 *
 * Of two such moments, when the clocks are set back, it is the earlier one: what is read again is no loss, and what is
 * skipped is.
 */
export function momentOf(wall: Date, zone: string): Date | undefined {
  return [-DAY_MS, DAY_MS]
    .map((away) => new Date(wall.getTime() - offsetOf(new Date(wall.getTime() + away), zone)))
    .filter((at) => wallTime(at, zone).getTime() === wall.getTime())
    .sort((one, other) => one.getTime() - other.getTime())[0];
}

/** Say how far the clocks of a zone are from UTC at a moment: "UTC", "+02:00". */
export function zoneLabel(at: Date, zone: string): string {
  const minutes = Math.round(Math.abs(offsetOf(at, zone)) / 60_000);
  if (minutes === 0 && formatOf(zone)?.resolvedOptions().timeZone === UTC) return UTC;
  const digits = [Math.floor(minutes / 60), minutes % 60].map((each) => `${each}`.padStart(2, "0"));
  return `${offsetOf(at, zone) < 0 ? "-" : "+"}${digits.join(":")}`;
}

function offsetOf(at: Date, zone: string): number {
  const name = formatOf(zone)
    ?.formatToParts(at)
    .find(({ type }) => type === "timeZoneName")?.value;
  // "GMT" alone is no offset; before zones were agreed on, there were seconds too.
  const [, sign, hours, minutes, seconds = "0"] = /([+-])(\d+):(\d+)(?::(\d+))?/.exec(name ?? "") ?? [];
  if (sign === undefined) return 0;
  const offset = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
  return sign === "-" ? -offset : offset;
}

// Made once for each zone: making one takes a hundred times as long as its use.
function formatOf(zone: string): Intl.DateTimeFormat | undefined {
  if (!formats.has(zone)) formats.set(zone, newFormat(zone));
  return formats.get(zone);
}

function newFormat(zone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
  } catch (error) {
    if (error instanceof RangeError) return undefined; // no such zone
    throw error;
  }
}
