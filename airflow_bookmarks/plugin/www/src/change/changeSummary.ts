import type { Preview, Window } from "../api/model";

/** What a change would do: of a preview that was just made, or of one that a request kept. */
export interface ChangeSummary {
  kind: string;
  version: number;
  /** The last run that stays history; 0: none. */
  toRun: number;
  /** Their numbers; of a request the first ones. */
  undone: readonly number[];
  undoneCount: number;
  unreadable: readonly string[];
  /** null: not known until the source is asked. */
  files: number | null;
  bytes: number | null;
  rows: number | null;
  /** What is not counted in files, by its unit; null: not known. */
  amounts?: Readonly<Record<string, number | null>>;
  watermarks: Readonly<Record<string, Window>>;
  /** Values of job.state that change, as JSON. */
  state: Readonly<Record<string, Window>>;
  /** Jobs that have read an undone run, and up to which run they have read. */
  consumers: Readonly<Record<string, number>>;
  hiddenConsumers: number;
  twice: readonly string[];
  /** Those of `twice` of which that is not known. */
  twiceUnknown: readonly string[];
  toClean: number;
  /** Outputs in other sinks than files, from which rows are removed. */
  sinksToClean: number;
  /** Files of runs undone before that still lie in a target; null: not known. */
  leftOver: number | null;
  /** What a set skips for good; null: nothing. */
  neverRead: NeverRead | null;
  holder: string | null;
}

/** What no run will ever read; numbers are null where it is not counted so, or where `unknown` says why. */
export interface NeverRead {
  files: number | null;
  bytes: number | null;
  rows?: number | null;
  /** What else is counted, by its unit: versions, snapshots. */
  amounts?: Readonly<Record<string, number>>;
  runs: readonly number[];
  consumers: readonly string[];
  unknown: string | null;
}

export function summaryOf(preview: Preview): ChangeSummary {
  return {
    kind: preview.change,
    version: preview.version,
    toRun: preview.to_run,
    undone: preview.undone_runs,
    undoneCount: preview.undone_run_count,
    unreadable: preview.unreadable_runs,
    ...preview.read_again,
    watermarks: preview.watermarks,
    state: preview.state,
    consumers: preview.consumers,
    hiddenConsumers: preview.hidden_consumers,
    twice: preview.written_twice,
    twiceUnknown: preview.written_twice_unknown,
    toClean: preview.files_to_clean,
    sinksToClean: preview.outputs_to_clean ?? 0,
    leftOver: preview.files_left_by_undone_runs ?? null,
    neverRead: skipped(preview.never_read ?? null),
    holder: preview.holder,
  };
}

type Kept = Readonly<Record<string, unknown>>;

/** Return the preview that a request kept; undefined where there is none, as of the end of a protection. */
export function summaryOfRequest(kept: Kept): ChangeSummary | undefined {
  if (typeof kept.change !== "string" || typeof kept.version !== "number") return undefined;
  const again = recordOf(kept.read_again);
  const undone = listOf(kept.undone_runs, isNumber);
  return {
    kind: kept.change,
    version: kept.version,
    toRun: isNumber(kept.to_run) ? kept.to_run : 0,
    undone,
    undoneCount: isNumber(kept.undone_run_count) ? kept.undone_run_count : undone.length,
    unreadable: listOf(kept.unreadable_runs, isText),
    files: numberOrNull(again.files),
    bytes: numberOrNull(again.bytes),
    rows: numberOrNull(again.rows),
    amounts: valuesOf(again.amounts, (value) => (isNumber(value) || value === null ? value : undefined)),
    watermarks: valuesOf(kept.watermarks, windowOf),
    state: valuesOf(kept.state, windowOf),
    consumers: valuesOf(kept.consumers, (value) => (isNumber(value) ? value : undefined)),
    hiddenConsumers: isNumber(kept.hidden_consumers) ? kept.hidden_consumers : 0,
    twice: listOf(kept.written_twice, isText),
    twiceUnknown: listOf(kept.written_twice_unknown, isText),
    toClean: isNumber(kept.files_to_clean) ? kept.files_to_clean : 0,
    sinksToClean: isNumber(kept.outputs_to_clean) ? kept.outputs_to_clean : 0,
    leftOver: kept.files_left_by_undone_runs === undefined ? 0 : numberOrNull(kept.files_left_by_undone_runs),
    neverRead: skipped(neverReadOf(kept.never_read)),
    holder: isText(kept.holder) ? kept.holder : null,
  };
}

function skipped(found: NeverRead | null): NeverRead | null {
  return found === null || (found.files === 0 && found.runs.length === 0) ? null : found;
}

function neverReadOf(value: unknown): NeverRead | null {
  if (typeof value !== "object" || value === null) return null;
  const { files, bytes, rows, amounts, runs, consumers, unknown } = recordOf(value);
  return {
    files: numberOrNull(files),
    bytes: numberOrNull(bytes),
    rows: numberOrNull(rows),
    amounts: valuesOf(amounts, (each) => (isNumber(each) ? each : undefined)),
    runs: listOf(runs, isNumber),
    consumers: listOf(consumers, isText),
    unknown: isText(unknown) ? unknown : null,
  };
}

function windowOf(value: unknown): Window {
  const { before, after } = recordOf(value);
  return { before: isText(before) ? before : null, after: isText(after) ? after : null };
}

function recordOf(value: unknown): Kept {
  return typeof value === "object" && value !== null ? (value as Kept) : {};
}

function valuesOf<T>(value: unknown, as: (value: unknown) => T | undefined): Record<string, T> {
  const found = Object.entries(recordOf(value)).map(([name, each]) => [name, as(each)] as const);
  return Object.fromEntries(found.filter((pair): pair is [string, T] => pair[1] !== undefined));
}

function listOf<T>(value: unknown, is: (value: unknown) => value is T): T[] {
  return Array.isArray(value) ? value.filter(is) : [];
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function numberOrNull(value: unknown): number | null {
  return isNumber(value) ? value : null;
}
