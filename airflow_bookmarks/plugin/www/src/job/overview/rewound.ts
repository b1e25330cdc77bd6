import type { Job } from "../../api/model";

/**
 * Whether a job went back behind what a consumer has read: that is from an epoch before, and above where the data stands.
 *
 * Once the job has new runs above it, its numbers alone don't tell any more; the lag of the consumer still does.
 */
export function isRewound(
  consumer: Pick<Job["consumers"][number], "run_number" | "epoch">,
  job: Pick<Job, "data_run_number" | "epoch">,
): boolean {
  if (job.data_run_number == null || job.epoch == null) return false;
  return consumer.epoch < job.epoch && consumer.run_number > job.data_run_number;
}
