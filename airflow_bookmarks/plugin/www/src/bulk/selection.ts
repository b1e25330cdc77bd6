import type { JobRow } from "../api/model";
import { count, inFull } from "../words/number";

/** A job that is selected in the list, as it was then. */
export type PickedJob = Pick<JobRow, "job" | "shards" | "state" | "order">;

/** The selected jobs by their names, also those on other pages of the list. */
export type Selection = ReadonlyMap<string, PickedJob>;

export const NONE: Selection = new Map();

/** How many jobs are changed together: each takes two requests, and a person has to read what each would do. */
export const MOST_JOBS = 100;

/** Return a selection with some jobs of the list put in or taken out. */
export function selectionWith(selection: Selection, rows: readonly JobRow[], isOn: boolean): Selection {
  const next = new Map(selection);
  for (const { job, shards, state, order } of rows) {
    if (isOn) next.set(job, { job, state, order, ...(shards === undefined ? {} : { shards }) });
    else next.delete(job);
  }
  return next;
}

/** Return a selection without some jobs. */
export function selectionWithout(selection: Selection, jobs: readonly string[]): Selection {
  return new Map([...selection].filter(([job]) => !jobs.includes(job)));
}

/** Whether all jobs that are shown are selected; "indeterminate" where some of them are. */
export function isAllSelected(selection: Selection, rows: readonly JobRow[]): boolean | "indeterminate" {
  const selected = rows.filter(({ job }) => selection.has(job)).length;
  if (selected === 0) return false;
  return selected === rows.length ? true : "indeterminate";
}

/** Say how many jobs are selected, and how many of them are not shown; nothing where none is. */
export function selectionInWords(selection: Selection, rows: readonly JobRow[]): string {
  if (selection.size === 0) return "";
  const elsewhere = selection.size - rows.filter(({ job }) => selection.has(job)).length;
  const selected = `${count(selection.size, "job")} selected`;
  return elsewhere === 0 ? selected : `${selected}, ${inFull(elsewhere)} not on this page`;
}

/** Say why a selection can't be changed together; undefined where it can. */
export function lackOfSelection({ size }: Selection): string | undefined {
  return size <= MOST_JOBS ? undefined : `At most ${MOST_JOBS} jobs can be changed together: clear some.`;
}
