const STEPS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];
const AT = new Intl.DateTimeFormat("en-CA", {
  dateStyle: "short",
  timeStyle: "medium",
  hourCycle: "h23",
});

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

/** Say how long ago a time was, seen from another: "3 min ago"; what lies ahead is "in 3 min". */
export function ago(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  const largest = duration(Math.abs(seconds)).split(" ").slice(0, 2).join(" ");
  return seconds < 0 ? `in ${largest}` : `${largest} ago`;
}

/** Say a time in the zone of whoever looks: "2026-11-21 14:05:09". */
export function inZone(at: Date): string {
  return AT.format(at).replace(",", "");
}

/** Return the time that a text is, undefined where it is none: a watermark may be a number or a key. */
export function timeOf(text: string | null | undefined): Date | undefined {
  if (!text || !/^\d{4}-\d{2}-\d{2}T/.test(text)) return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
