import { scaleLinear } from "d3-scale";
import type { RunPoint } from "../api/model";
import { type Look, lookOf } from "../job/runs/looks";
import { amountsInWords, count, inBytes } from "../words/number";
import { inZone, timeOf } from "../words/time";

/** One run as a bar: how far it rises above the ground, and how it is drawn. */
export interface Bar {
  run: RunPoint;
  height: number;
  look: Look;
}

// A run that read next to nothing is still there to be seen, and pointed at; an empty one lies on the ground. What did not
// commit is high enough for its pattern, and often never said what it read.
const LEAST = 3;
const GROUND = 1;
const PATTERNED = 0.5;
const COMMITTED: readonly string[] = ["COMMITTED", "PUBLISHED"];

/**
 * Return runs as bars: by rows where each run counted them that read anything, else by files, else by what else their
 * sources count.
 */
export function barsOf(runs: readonly RunPoint[], height: number): Bar[] {
  const sizes = runs.map(measureOf(runs));
  const rise = scaleLinear()
    .domain([0, Math.max(1, ...sizes)])
    .range([0, height]);
  return runs.map((run, i) => {
    const size = sizes[i] ?? 0;
    const least = !COMMITTED.includes(run.state) ? PATTERNED * height : size === 0 ? GROUND : LEAST;
    return { run, height: Math.max(least, rise(size)), look: lookOf(run.state) };
  });
}

function measureOf(runs: readonly RunPoint[]): (run: RunPoint) => number {
  if (isInRows(runs)) return (run) => run.rows ?? 0;
  const units = new Set(runs.flatMap((run) => Object.keys(run.amounts)));
  const [unit] = units;
  // Several units have no measure in common.
  if (unit !== undefined && units.size === 1 && runs.every((run) => !run.files)) return (run) => run.amounts[unit] ?? 0;
  return (run) => run.files ?? LEAST;
}

/** Say runs in one sentence, for who can't see the bars: "10 runs, the last read 4 files; 1 failed". */
export function sentenceOf(runs: readonly RunPoint[]): string {
  const last = runs.at(-1);
  if (last === undefined) return "no runs";
  const text = `${count(runs.length, "run")}, the last ${sizeOf(last)}`;
  const apart = (["FAILED", "UNDONE"] as const)
    .map((state) => [runs.filter((run) => run.state === state).length, state.toLowerCase()] as const)
    .filter(([runs]) => runs > 0)
    .map(([runs, word]) => `${runs} ${word}`);
  return [text, ...apart].join("; ");
}

/** Say what one run was: "run 7, PUBLISHED, read 4 files, 1.2 kB, 2026-11-21 14:05:09". */
export function runInWords(run: RunPoint): string {
  const at = timeOf(run.at);
  const bytes = run.bytes !== null && run.bytes > 0 ? [inBytes(run.bytes)] : [];
  return [`run ${run.number}`, run.state, sizeOf(run), ...bytes, at === undefined ? run.at : inZone(at)].join(", ");
}

function sizeOf(run: RunPoint): string {
  const others = amountsInWords(run.amounts);
  if (run.files !== null && run.files > 0) {
    return `read ${[count(run.files, "file"), others].filter((words) => words !== undefined).join(", ")}`;
  }
  if (run.rows !== null && run.rows > 0) return `read ${count(run.rows, "row")}`;
  if (others !== undefined) return `read ${others}`;
  if (run.files === null) return "read an unknown amount";
  // A run that was stopped in between never said what it read.
  return COMMITTED.includes(run.state) ? "read nothing" : "did not commit";
}

function isInRows(runs: readonly RunPoint[]): boolean {
  return runs.some((run) => run.rows !== null) && runs.every((run) => run.rows !== null || run.files === 0);
}
