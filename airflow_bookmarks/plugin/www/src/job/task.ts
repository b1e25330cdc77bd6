import type { RunRow } from "../api/model";

type Task = NonNullable<RunRow["task"]>;

/** Return where Airflow shows the log of one try of a task. */
export function logOf(task: Task): string {
  const mapped = task.map_index >= 0 ? `/mapped/${task.map_index}` : "";
  const run = `/dags/${encodeURIComponent(task.dag_id)}/runs/${encodeURIComponent(task.dag_run_id)}`;
  return `${run}/tasks/${encodeURIComponent(task.task_id)}${mapped}?try_number=${task.try_number}`;
}

/** Return where Airflow shows a DAG. */
export function dagPage(dagId: string): string {
  return `/dags/${encodeURIComponent(dagId)}`;
}

/** Return where Airflow shows a task of a DAG. */
export function taskPage(dagId: string, taskId: string): string {
  return `${dagPage(dagId)}/tasks/${encodeURIComponent(taskId)}`;
}
