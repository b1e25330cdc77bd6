import { Text } from "@chakra-ui/react";
import { useJob, useRuns } from "../api/queries";
import { progressWords } from "./next";

/** How far the next run of a job is since a change of it, which began an epoch; it keeps up by itself. */
export function NextRunProgress({ job, epoch }: { job: string; epoch: number }) {
  const runs = useRuns(job).data?.pages[0]?.runs;
  const isHeld = useJob(job).data?.state === "RUNNING";
  if (runs === undefined) return null;
  return (
    <Text role="status" wordBreak="break-word" data-testid="next-run">
      Next run: {progressWords(runs, epoch, isHeld)}
    </Text>
  );
}
