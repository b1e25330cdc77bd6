import type { Pending, PendingRow } from "../../api/model";
import { amountsInWords, count, inBytes, inFull } from "../../words/number";

/** Say what the next run would do, in one sentence. */
export function pendingWords(pending: Pending): string {
  if (pending.unknown === null && pending.contexts.some(isRecorded)) {
    return "The page checked no files or tables, so what is new is unknown. What earlier runs recorded is shown below.";
  }
  if (!pending.is_known) return `Unknown until the run: ${pending.unknown ?? "a source can't be checked"}`;
  if (pending.is_empty) return "There is nothing new: the next run would be empty.";
  if (pending.files === 0) return hasMore(pending) ? "There is new input." : "There is nothing new to read.";
  if (pending.files === null) {
    const amounts = pending.contexts.map((row) => amountWords(row)).filter((words) => words !== undefined);
    const isWhole = amounts.length === pending.contexts.length && pending.contexts.every((row) => row.count != null);
    return isWhole ? `The next run would read ${amounts.join(", ")}.` : "How much is new is unknown until the run.";
  }
  return `The next run would read ${count(pending.files, "file")}${pending.bytes === null ? "" : ` (${inBytes(pending.bytes)})`}.`;
}

/** Say how much there is of what is not counted in files: "3 keys". Undefined where files are counted. */
export function amountWords(row: { unit?: string | null; count?: number | null }): string | undefined {
  return row.unit == null ? undefined : amountsInWords({ [row.unit]: row.count ?? null });
}

function isRecorded(row: PendingRow): boolean {
  return row.recorded_by != null;
}

// What is no file has no size that could be told.
function hasMore(pending: Pending): boolean {
  return pending.contexts.some((context) => context.files === null || (context.runs?.length ?? 0) > 0);
}

/** Say what has to be finished before anything is read; nothing for a job that owes nothing. */
export function firstWords(pending: Pending): string[] {
  const said: string[] = [];
  if (pending.cleaning) said.push("It first removes what undone runs published.");
  if (pending.due_run_number !== null) said.push(`It first publishes run ${pending.due_run_number}.`);
  if (pending.left_open.length > 0) said.push(`It first settles unfinished runs: ${pending.left_open.join(", ")}.`);
  if (pending.holder) said.push(`${pending.holder} is using the job now.`);
  return said;
}

/** Say how many files of a context a run would read, and how many of these were read before. */
export function filesWords(row: Pick<PendingRow, "files" | "read_again" | "unit" | "count">): string {
  if (row.files === null) return amountWords(row) ?? "unknown";
  return row.read_again ? `${inFull(row.files)}, ${inFull(row.read_again)} of them again` : inFull(row.files);
}

/** Say whose word for a figure is taken, where nobody looked; undefined where somebody did. */
export function recordedWords(row: { recorded_by?: number | null }): string | undefined {
  return row.recorded_by == null ? undefined : `recorded by run ${row.recorded_by}: what it left unread`;
}

/** Say what a run would leave out of a context: "2 late, 1 settling". Undefined where it would leave nothing. */
export function skippedWords(row: Pick<PendingRow, "skipped">): string | undefined {
  const said = Object.entries(row.skipped)
    .filter(([, files]) => files > 0)
    .map(([reason, files]) => `${files} ${reason.replaceAll("_", " ")}`);
  return said.length > 0 ? said.join(", ") : undefined;
}

/** Say the runs of an upstream: "runs 4 to 7", or "run 4". */
export function runsWords(runs: readonly number[] | null | undefined): string | undefined {
  if (!runs || runs.length === 0) return undefined;
  const first = Math.min(...runs);
  const last = Math.max(...runs);
  return first === last ? `run ${first}` : `runs ${first} to ${last}`;
}
