import type { RunRow } from "../../api/model";

const PLAIN = /^[\w.][\w.-]*$/;

/** Whether a run can be made again as far as its state says: its input is planned, and its output is there. */
export function mayBeReplayed({ state }: Pick<RunRow, "state">): boolean {
  return state === "PUBLISHED";
}

/** Return the command that says whether a run can be replayed, and with which settings. */
export function replayCommand(job: string, { number }: Pick<RunRow, "number">): string {
  const name = PLAIN.test(job) ? job : `'${job}'`;
  // What begins with a dash would be taken for an option.
  return `airflow-bookmarks replay --run ${number} ${job.startsWith("-") ? `-- ${name}` : name}`;
}
