import { currentZone, wallTime, zoneLabel } from "./zone";

const STEPS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** Say how long something takes in its two largest units: "2 h 5 min"; below a second in milliseconds. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(Math.max(0, seconds) * 1000)} ms`;
  let left = Math.round(seconds);
  const parts: string[] = [];
  for (const [size, unit] of STEPS) {
    const whole = Math.floor(left / size);
    left -= whole * size;
    if (whole > 0) parts.push(`${whole} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/**
 * Say how long ago something happened: "3 min ago".
 *
 * The clocks of server and browser differ, so what seems to lie ahead has happened just now.
 */
export function ago(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  return seconds < 1 ? "just now" : `${largest(seconds)} ago`;
}

/** Say when a time is that may well lie ahead: "in 3 min", "3 min ago". */
export function agoOrAhead(at: Date, now: Date): string {
  const seconds = (at.getTime() - now.getTime()) / 1000;
  return seconds < 1 ? ago(at, now) : `in ${largest(seconds)}`;
}

function largest(seconds: number): string {
  return duration(seconds).split(" ").slice(0, 2).join(" ");
}

/** Say a time in the zone that is chosen in Airflow, with its offset: "2026-11-21 14:05:09 +01:00". */
export function inZone(at: Date, zone = currentZone()): string {
  return `${withoutZone(wallTime(at, zone))} ${zoneLabel(at, zone)}`;
}

/** Say a time of UTC, without a zone: "2026-11-21 14:05:09". */
export function withoutZone(at: Date): string {
  return at
    .toISOString()
    .replace(/\.\d+Z$/, "")
    .replace("T", " ");
}

// As the server and the page write times of UTC. What is part of a name, as a run id or a path has it, is no such time.
const IN_TEXT = /(?<![\w/=:.-])\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|\+00:00)(?!\.?[\w/-])/g;

/** Say a text with the times in it in the zone that is chosen in Airflow: the server writes them in UTC. */
export function timesInZone(text: string, zone = currentZone()): string {
  return text.replace(IN_TEXT, (found) => {
    const at = timeOf(found);
    return at === undefined ? found : inZone(at, zone);
  });
}

/** Return the time that a text is, undefined where it is none: a watermark may be a number or a key. */
export function timeOf(text: string | null | undefined): Date | undefined {
  if (!text || !/^\d{4}-\d{2}-\d{2}T/.test(text)) return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
