import type { Gaps, RunRow } from "../../api/model";
import { inBytes, inFull } from "../../words/number";

/** A fact of a run in words. */
export interface Fact {
  name: string;
  said: string;
}

/** A part of a run's time, and how much of all of it. */
export interface Phase {
  name: string;
  seconds: number;
  share: number;
}

/** What of a sequence, or of the days of a column, a run saw and missed; of a damaged record there may be less. */
type Missing = Pick<Gaps, "missing" | "first" | "last" | "ranges" | "more_ranges">;

function gapWords({
  missing = 0,
  first = "",
  last = "",
  ranges = [],
  more_ranges: more = 0,
}: Partial<Missing>): string {
  if (missing === 0) return `none from ${first} to ${last}`;
  const named = ranges.map((range) => range.replace("..", " to ")).join(", ");
  return `${inFull(missing)} of ${first} to ${last} missing: ${named}${more > 0 ? `, and ${inFull(more)} ranges below` : ""}`;
}

/** Return the seconds of a run by part, longest first. */
export function phasesOf(run: Pick<RunRow, "seconds">): Phase[] {
  const known = Object.entries(run.seconds)
    .map(([name, text]) => ({ name: name.replaceAll("_", " "), seconds: Number(text) }))
    .filter((phase) => Number.isFinite(phase.seconds));
  const all = known.reduce((total, phase) => total + phase.seconds, 0);
  return known
    .map((phase) => ({ ...phase, share: all === 0 ? 0 : phase.seconds / all }))
    .sort((one, other) => other.seconds - one.seconds);
}

/** Return what each step of the script left out of what was read, in words; by the names that the script gave. */
export function leftOutOf(run: Pick<RunRow, "left_out">): Fact[] {
  return Object.entries(run.left_out).map(([name, counts]) => {
    const said = Object.entries(counts).map(([reason, count]) => `${reason}: ${inFull(count)}`);
    return { name, said: said.join(", ") };
  });
}

// How two histories are told apart, and ends of a window that are shown as such: of use to who looks into a defect alone.
const INTERNAL: ReadonlySet<string> = new Set(["after", "changes", "epoch", "fence", "replaced", "until"]);

/** Return what is known of a context or an output, each fact in words; what has no words yet stays as it is. */
export function factsOf(facts: Readonly<Record<string, unknown>>): Fact[] {
  return Object.entries(facts)
    .filter(([name]) => !name.startsWith("watermark") && !INTERNAL.has(name))
    .map(([name, value]) => ({ name: name.replaceAll("_", " "), said: factWords(name, value) }))
    .filter((fact) => fact.said !== "");
}

function factWords(name: string, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (name === "gaps") return gapWords(value as Partial<Missing>);
  if (typeof value === "number") return name.includes("bytes") ? inBytes(value) : inFull(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map((each) => factWords(name, each)).join(", ");
  if (typeof value !== "object") return "";
  return Object.entries(value)
    .filter(([key]) => name !== "upstream" || !INTERNAL.has(key))
    .map(([key, each]): [string, string] => [key.replaceAll("_", " "), factWords(key, each)])
    .filter(([, said]) => said !== "")
    .map(([key, said]) => `${key} ${said}`)
    .join(", ");
}
