import { Stack } from "@chakra-ui/react";
import type { Job } from "../../api/model";
import { Boundary } from "../../parts/Boundary";
import { Consumers } from "./Consumers";
import { Contexts } from "./Contexts";
import { Lags } from "./Lags";
import { NextRun } from "./NextRun";
import { Partitions } from "./Partitions";
import { SetAside } from "./SetAside";
import { SideRuns } from "./SideRuns";
import { StateValues } from "./StateValues";

/** Where a job stands, what it would read next, and who reads it. */
export function Overview({ job }: { job: Job }) {
  return (
    <Stack gap={6}>
      <Boundary what="The list of contexts">
        <Contexts contexts={job.contexts} />
      </Boundary>
      <Boundary what="The list of values">
        <StateValues values={job.job_state} />
      </Boundary>
      {job.contexts.some((context) => context.reads_parts) && (
        <Boundary what="The list of partitions">
          <Partitions job={job.job} />
        </Boundary>
      )}
      <Boundary what="The list of files set aside">
        <SetAside job={job} />
      </Boundary>
      <Boundary what="The next run">
        <NextRun job={job.job} />
      </Boundary>
      <Boundary what="The lag">
        <Lags job={job.job} />
      </Boundary>
      <Boundary what="The list of consumers">
        <Consumers job={job} />
      </Boundary>
      <Boundary what="The list of pause and disable runs">
        <SideRuns job={job} />
      </Boundary>
    </Stack>
  );
}
