import type { RunRow } from "../../api/model";
import { inBytes, inFull, inShort } from "../../words/number";
import { duration, timeOf } from "../../words/time";
import { secondsOf } from "../runs/run";

/** What a chart shows of each run. `say` says a value. */
export interface Measure {
  id: string;
  title: string;
  hint: string;
  value: (run: RunRow) => number | null;
  say: (value: number) => string;
  /** Says a value at the axis, where there is less room; `say` without it. */
  tick?: (value: number) => string;
  /** A deviation that is always usual. */
  least?: number;
  /** Whether an empty run has a value like any other. */
  hasEmpty?: boolean;
  /** Whether the values are seconds. */
  isTime?: boolean;
  /** Whether runs stand where they were in time, and not one beside the other. */
  isByTime?: boolean;
}

/** How much a run, or one context of it, has read. */
interface Read {
  rows: number | null;
  files: number | null;
  bytes: number | null;
  amounts: Readonly<Record<string, number | null>>;
}

const COUNT = { say: inFull, tick: inShort, least: 1 };
const SECONDS = { say: duration, isTime: true, least: 1 };
const ROWS = "rows";

/**
 * Return what is charted of runs: what they read in what their sources count, what they wrote, how long they took, and how
 * far each context is behind. `ctx`: one of several contexts alone; undefined: all of them together.
 */
export function measuresOf(runs: readonly RunRow[], contexts: readonly string[], ctx: string | undefined): Measure[] {
  const read = ctx === undefined ? readOfRun : (run: RunRow) => readOfContext(run, ctx);
  const where = contexts.length < 2 ? undefined : ctx === undefined ? "in all contexts" : `in context ${ctx}`;
  const known = [...amountsRead(runs, read, where), ...otherFigures(read)].filter(
    (measure) => measure.isAlways || runs.some((run) => measure.value(run) !== null),
  );
  return [...known, ...(ctx === undefined ? contexts : [ctx]).map((each) => lagMeasure(each, contexts.length > 1))];
}

interface Candidate extends Measure {
  /** Whether it is shown also where no run has a value, which is said there. */
  isAlways?: boolean;
}

function amountsRead(runs: readonly RunRow[], read: (run: RunRow) => Read, where: string | undefined): Candidate[] {
  const units = new Set(runs.flatMap((run) => Object.keys(read(run).amounts)));
  const hasFiles = units.size === 0 || runs.some((run) => read(run).files !== null || read(run).bytes !== null);
  const hint = (text: string) => (where === undefined ? text : `${text}, ${where}`);
  const isAlways = true;
  return [
    {
      id: ROWS,
      title: "Rows read",
      hint: hint("counted by the run, or by its plan"),
      value: (run) => read(run).rows,
      isAlways,
      ...COUNT,
    },
    ...(hasFiles
      ? [
          {
            id: "bytes",
            title: "Bytes read",
            hint: hint("size of the files"),
            value: (run: RunRow) => read(run).bytes,
            say: inBytes,
            isAlways,
          },
          {
            id: "files",
            title: "Files read",
            hint: hint("planned by the run"),
            value: (run: RunRow) => read(run).files,
            isAlways,
            ...COUNT,
          },
        ]
      : []),
    ...[...units]
      .filter((unit) => unit !== ROWS)
      .map((unit) => ({
        id: `unit-${unit}`,
        title: `${unit.charAt(0).toUpperCase()}${unit.slice(1)} read`,
        hint: hint("planned by the run"),
        value: (run: RunRow) => read(run).amounts[unit] ?? null,
        isAlways,
        ...COUNT,
      })),
  ];
}

function otherFigures(read: (run: RunRow) => Read): Candidate[] {
  return [
    {
      id: "rows-written",
      title: "Rows written",
      hint: "by managed sinks, in all outputs",
      value: (run) => run.rows_written ?? null,
      ...COUNT,
    },
    {
      id: "duration",
      title: "Duration",
      hint: "from the plan of the run until its output is published",
      value: (run) => secondsOf(run) ?? null,
      ...SECONDS,
    },
    {
      id: "rows-per-second",
      title: "Rows per second",
      hint: "rows read, divided by the duration of the whole run",
      value: (run) => rateOf(read(run).rows, run),
      say: (value) => `${inShort(value)}/s`,
    },
    {
      id: "bytes-per-second",
      title: "Bytes per second",
      hint: "bytes read, divided by the duration of the whole run",
      value: (run) => rateOf(read(run).bytes, run),
      say: (value) => `${inBytes(value)}/s`,
    },
  ];
}

function readOfRun(run: RunRow): Read {
  const { rows = null, files = null, bytes = null, amounts } = run;
  return { rows: rows ?? amounts[ROWS] ?? null, files, bytes, amounts };
}

function readOfContext(run: RunRow, ctx: string): Read {
  const figures = run.contexts[ctx] ?? {};
  const { unit } = figures;
  const amounts = typeof unit === "string" && unit !== "files" ? { [unit]: numberOf(figures.count) } : {};
  return {
    rows: numberOf(figures.rows) ?? amounts[ROWS] ?? null,
    files: numberOf(figures.files),
    bytes: numberOf(figures.bytes),
    amounts,
  };
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

// Of a run that read nothing it says nothing how fast it would have.
function rateOf(amount: number | null, run: RunRow): number | null {
  const seconds = secondsOf(run);
  return amount === null || amount === 0 || !seconds ? null : amount / seconds;
}

function lagMeasure(ctx: string, isOneOfSeveral: boolean): Measure {
  return {
    id: isOneOfSeveral ? `lag-${ctx}` : "lag",
    title: isOneOfSeveral ? `Lag of ${ctx}` : "Lag",
    hint: `how old the newest data of ${ctx} was when the run committed, over time`,
    value: (run) => lagOf(run, ctx),
    isByTime: true,
    hasEmpty: true,
    ...SECONDS,
  };
}

/** Return how old the newest data of a context was when a run committed, in seconds; null where that is not known to be a time. */
export function lagOf(run: Pick<RunRow, "committed_at" | "order" | "window">, ctx: string): number | null {
  const committed = timeOf(run.committed_at);
  const newest = run.order[ctx] === "time" ? timeOf(run.window[ctx]?.after) : undefined;
  if (committed === undefined || newest === undefined) return null;
  return Math.max(0, (committed.getTime() - newest.getTime()) / 1000);
}
