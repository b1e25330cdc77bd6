import type { Job } from "../api/model";
import { dagPage, taskPage } from "../job/task";

/** What is left to do after a change: a sentence that ends with a link. */
export interface NextStep {
  before: string;
  link: string;
  to: string;
}

const READS_AGAIN = ["reset", "rewind", "set", "undo", "relocate", "unlock"];

/** Return what a person does after a change so that the job runs; undefined where nothing is to be run, or by no DAG. */
export function nextOf(kind: string, job: Pick<Job, "dag_id" | "task_id">): NextStep | undefined {
  if (!READS_AGAIN.includes(kind) || job.dag_id == null) return undefined;
  if (job.task_id == null) {
    return { before: "To run the job now, trigger", link: `DAG ${job.dag_id}`, to: dagPage(job.dag_id) };
  }
  return {
    before: "To run the job now, trigger its DAG, or clear",
    link: `task ${job.task_id} of DAG ${job.dag_id}`,
    to: taskPage(job.dag_id, job.task_id),
  };
}
