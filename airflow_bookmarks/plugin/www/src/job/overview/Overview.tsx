import { Stack } from "@chakra-ui/react";
import type { Job } from "../../api/model";
import { Consumers } from "./Consumers";
import { Contexts } from "./Contexts";
import { Lags } from "./Lags";
import { NextRun } from "./NextRun";
import { Partitions } from "./Partitions";
import { SideRuns } from "./SideRuns";
import { StateValues } from "./StateValues";

/** Where a job stands, what it would read next, and who reads it. */
export function Overview({ job }: { job: Job }) {
  return (
    <Stack gap={6}>
      <Contexts contexts={job.contexts} />
      <StateValues values={job.job_state} />
      {job.contexts.some((context) => context.reads_parts) && <Partitions job={job.job} />}
      <NextRun job={job.job} />
      <Lags job={job.job} />
      <Consumers job={job} />
      <SideRuns job={job} />
    </Stack>
  );
}
