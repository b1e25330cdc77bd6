import { Code, HStack, Link, Stack, Text } from "@chakra-ui/react";
import { Link as RouterLink } from "react-router-dom";
import type { RunRow } from "../../api/model";
import { CopyButton } from "../../parts/CopyButton";
import { logOf } from "../task";
import { replayCommand } from "./replay";

/** How a run is made again. It is a run of the job, which needs Spark, so the page starts none. */
export function Replay({ job, run }: { job: string; run: RunRow }) {
  const command = replayCommand(job, run);
  return (
    <Stack gap={2} fontSize="sm">
      <Text>
        A replay reads the same input and replaces this run's output; the position and other runs stay as they are.
      </Text>
      {run.task && (
        <Text>
          To replay it, clear{" "}
          <Link asChild colorPalette="blue" wordBreak="break-all">
            <RouterLink to={logOf(run.task)}>task {run.task.task_id}</RouterLink>
          </Link>{" "}
          in Airflow. (Only an operator with bookmark_on_clear="replay" replays it.)
        </Text>
      )}
      <Text>
        {run.task
          ? "To check whether a replay is possible, and how to do it without Airflow:"
          : "To check whether a replay is possible, and how:"}
      </Text>
      <HStack>
        <Code wordBreak="break-all">{command}</Code>
        <CopyButton text={command} what="command" />
      </HStack>
    </Stack>
  );
}
