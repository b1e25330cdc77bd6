import { scaleLinear } from "d3-scale";
import type { RunPoint } from "../api/model";
import { count, inBytes } from "../words/number";
import { inZone, timeOf } from "../words/time";

/** One run as a bar: how far it rises above the ground, and whether it counts as history. */
export interface Bar {
  run: RunPoint;
  height: number;
  isFilled: boolean;
}

// A run that read next to nothing is still there to be seen, and pointed at; an empty one lies on the ground. What did not
// commit is drawn hollow, which takes more than a line, and often never said what it read.
const LEAST = 3;
const GROUND = 1;
const HOLLOW = 0.5;
const COMMITTED: readonly string[] = ["COMMITTED", "PUBLISHED"];

/** Return runs as bars: by rows where each run counted them that read anything, else by files. */
export function barsOf(runs: readonly RunPoint[], height: number): Bar[] {
  const sizes = runs.map(isInRows(runs) ? (run) => run.rows ?? 0 : (run) => run.files ?? LEAST);
  const rise = scaleLinear()
    .domain([0, Math.max(1, ...sizes)])
    .range([0, height]);
  return runs.map((run, i) => {
    const size = sizes[i] ?? 0;
    const isFilled = COMMITTED.includes(run.state);
    const least = !isFilled ? HOLLOW * height : size === 0 ? GROUND : LEAST;
    return { run, height: Math.max(least, rise(size)), isFilled };
  });
}

/** Say runs in one sentence, for who can't see the bars: "10 runs, the last read 4 files; 1 failed". */
export function sentenceOf(runs: readonly RunPoint[]): string {
  const last = runs.at(-1);
  if (last === undefined) return "no runs";
  const failed = runs.filter((run) => run.state === "FAILED").length;
  const text = `${count(runs.length, "run")}, the last ${sizeOf(last)}`;
  return failed === 0 ? text : `${text}; ${failed} failed`;
}

/** Say what one run was: "run 7, PUBLISHED, read 4 files, 1.2 kB, 2026-11-21 14:05:09". */
export function runInWords(run: RunPoint): string {
  const at = timeOf(run.at);
  const bytes = run.bytes !== null && run.bytes > 0 ? [inBytes(run.bytes)] : [];
  return [`run ${run.number}`, run.state, sizeOf(run), ...bytes, at === undefined ? run.at : inZone(at)].join(", ");
}

function sizeOf(run: RunPoint): string {
  if (run.files !== null && run.files > 0) return `read ${count(run.files, "file")}`;
  if (run.rows !== null && run.rows > 0) return `read ${count(run.rows, "row")}`;
  if (run.files === null) return "read an unknown amount";
  // A run that was stopped in between never said what it read.
  return COMMITTED.includes(run.state) ? "read nothing" : "did not commit";
}

function isInRows(runs: readonly RunPoint[]): boolean {
  return runs.some((run) => run.rows !== null) && runs.every((run) => run.rows !== null || run.files === 0);
}
