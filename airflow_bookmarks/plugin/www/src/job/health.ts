import type { Job, JobRow } from "../api/model";
import { inFull } from "../words/number";

/** Say what is committed or undone and still to be finished; nothing for a job that owes nothing. */
export function stillToDo(job: Pick<Job, "due_run_number" | "cleaning">): string[] {
  const said: string[] = [];
  if (job.due_run_number != null)
    said.push(
      `Run ${job.due_run_number} is committed, publish pending. The next run publishes it first, and stops there if that fails; its task log says why and what to do.`,
    );
  if (job.cleaning) said.push("Cleanup pending: the next run first removes what undone runs published.");
  return said;
}

/** The run up to which the data of a job stands, in words. */
export interface Numbers {
  title: string;
  said: string;
  /** The number given last, where that is another one. */
  last: string | undefined;
}

/** Say up to which run a job has data: a rewind takes that back and numbers never, and empty runs have numbers too. */
export function numbersOf({
  run_number: last,
  data_run_number: data,
}: Pick<Job, "run_number" | "data_run_number">): Numbers {
  if (last == null) return { title: "Run", said: "unknown", last: undefined };
  if (data == null || data === last) return { title: "Run", said: inFull(last), last: undefined };
  const said = data === 0 ? "no run" : `run ${inFull(data)}`;
  return { title: "Data up to", said, last: `last run number ${inFull(last)}` };
}

/** Say how many virtual shards a sharded job has, and how many of them need a look: "64, 2 held". */
export function shardWords(
  job: Pick<JobRow, "shards" | "held_shards" | "due_shards" | "damaged_shards">,
): string | undefined {
  if (job.shards == null) return undefined;
  const parts = [
    [job.held_shards, "held"],
    [job.due_shards, "due"],
    [job.damaged_shards, "damaged"],
  ] as const;
  const said = parts.flatMap(([number, what]) => (number ? [`${inFull(number)} ${what}`] : []));
  return [inFull(job.shards), ...said].join(", ");
}

/** Say which task makes the runs of a job: "clean [3]"; undefined where Airflow never did. */
export function taskWords(job: Pick<Job, "dag_id" | "task_id" | "map_index">): string | undefined {
  if (!job.task_id) return undefined;
  return job.map_index != null && job.map_index >= 0 ? `${job.task_id} [${job.map_index}]` : job.task_id;
}
