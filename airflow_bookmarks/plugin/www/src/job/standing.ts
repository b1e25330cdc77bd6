import type { Job } from "../api/model";

/** Say what is committed or undone and still to be finished; nothing for a job that owes nothing. */
export function stillToDo(job: Pick<Job, "due_run_number" | "cleaning">): string[] {
  const said: string[] = [];
  if (job.due_run_number != null)
    said.push(`Run ${job.due_run_number} is committed and still to be published. The next run does that first.`);
  if (job.cleaning) said.push("What undone runs published is still to be removed. The next run does that first.");
  return said;
}

/** Say which task makes the runs of a job: "clean [3]"; undefined where Airflow never did. */
export function taskWords(job: Pick<Job, "dag_id" | "task_id" | "map_index">): string | undefined {
  if (!job.task_id) return undefined;
  return job.map_index != null && job.map_index >= 0 ? `${job.task_id} [${job.map_index}]` : job.task_id;
}
