import type { Job, RunRow } from "../api/model";
import { dagPage, taskPage } from "../job/task";
import { readWords } from "../words/amount";
import { inBytes } from "../words/number";

/** What is left to do after a change: a sentence that ends with a link. */
export interface NextStep {
  before: string;
  link: string;
  to: string;
}

const READS_AGAIN = ["reset", "rewind", "set", "undo", "relocate", "unlock"];

/** Whether a change has the next run read something that a person waits for. */
export function readsAgain(kind: string): boolean {
  return READS_AGAIN.includes(kind);
}

/** Say how far the next run is. `runs` are the newest first; those after a change are of the epoch that it began. */
export function progressWords(runs: readonly RunRow[], epoch: number, isHeld: boolean): string {
  const run = runs.find((each) => each.epoch != null && each.epoch >= epoch);
  if (run === undefined) return isHeld ? "A run has started and is still planning." : "not started yet.";
  const { state, error } = run;
  if (state === "PLANNED") return `Run ${run.number} has started: it reads ${sizeOf(run)}.`;
  if (state === "COMMITTED") return `Run ${run.number} has read ${sizeOf(run)} and is not published yet.`;
  if (state === "PUBLISHED") return `Run ${run.number} has read ${sizeOf(run)} and is published.`;
  if (state === "FAILED") return `Run ${run.number} failed${error ? `: ${error}` : "."}`;
  return `Run ${run.number}: ${state}.`;
}

function sizeOf(run: RunRow): string {
  const said = [readWords(run), run.bytes == null ? undefined : inBytes(run.bytes)];
  return said.filter((words) => words !== undefined).join(", ") || "its input";
}

/** Return what a person does after a change so that the job runs; undefined where nothing is to be run, or by no DAG. */
export function nextOf(kind: string, job: Pick<Job, "dag_id" | "task_id">): NextStep | undefined {
  if (!readsAgain(kind) || job.dag_id == null) return undefined;
  if (job.task_id == null) {
    return { before: "To run the job now, trigger", link: `DAG ${job.dag_id}`, to: dagPage(job.dag_id) };
  }
  return {
    before: "To run the job now, trigger its DAG, or clear",
    link: `task ${job.task_id} of DAG ${job.dag_id}`,
    to: taskPage(job.dag_id, job.task_id),
  };
}
