import { Alert, Link, Stack, Text } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { Link as RouterLink } from "react-router-dom";
import type { Changed, Job, Requested } from "../api/model";
import { sentence } from "../words/sentence";
import { Marks, pairsOf } from "./Marks";
import { NextRunProgress } from "./NextRunProgress";
import { nextOf, readsAgain } from "./next";
import { shardsInWords } from "./sharded";
import { useReadFirst } from "./useReadFirst";

interface AnswerViewProps {
  answer: Changed | Requested;
  job: Pick<Job, "dag_id" | "task_id">;
  /** What else is left to do. */
  children?: ReactNode;
}

/** The last step: what the server did, in its words, and what reads the input again. */
export function AnswerView({ answer, job, children }: AnswerViewProps) {
  const box = useReadFirst<HTMLDivElement>();
  return (
    <Stack gap={4} ref={box} tabIndex={-1} outline="none" scrollMarginTop={4} data-testid="change-answer">
      <Alert.Root status="success" role="status">
        <Alert.Indicator />
        <Alert.Content>
          <Alert.Title>Done</Alert.Title>
          <Alert.Description wordBreak="break-word">{sentence(answer.said)}</Alert.Description>
        </Alert.Content>
      </Alert.Root>
      {"change" in answer && <Made changed={answer} />}
      {"change" in answer && <Next kind={answer.change} job={job} />}
      {"change" in answer && isWaitedFor(answer) && <NextRunProgress job={answer.job} epoch={answer.epoch.after} />}
      {children}
      <Text color="fg.muted">
        {answer.audited
          ? "Also recorded in Airflow's audit log."
          : "Recorded in the job's history, but not in Airflow's audit log; the server log says why."}
      </Text>
    </Stack>
  );
}

/** Whether the next run has something to do that a person waits for; of several jobs there is more than one. */
function isWaitedFor(answer: Changed): answer is Changed & { epoch: NonNullable<Changed["epoch"]> } {
  return readsAgain(answer.change) && answer.epoch != null && answer.shards == null;
}

/** Where a person starts the run that reads again: in Airflow, which asks them what to run with. */
function Next({ kind, job }: { kind: string; job: AnswerViewProps["job"] }) {
  const todo = nextOf(kind, job);
  return (
    todo && (
      <Text>
        {todo.before}{" "}
        <Link asChild colorPalette="blue" wordBreak="break-all">
          <RouterLink to={todo.to}>{todo.link}</RouterLink>
        </Link>
        .
      </Text>
    )
  );
}

function Made({ changed }: { changed: Changed }) {
  const { watermarks, unreadable_runs: unreadable, requested_by, approved_by } = changed;
  const shards = shardsInWords(changed);
  return (
    <>
      {Object.keys(watermarks).length > 0 && (
        <Marks caption="Watermarks before and after" heads={["Before", "After"]} rows={pairsOf(watermarks)} />
      )}
      {unreadable.length > 0 && (
        <Alert.Root status="warning">
          <Alert.Indicator />
          <Alert.Description wordBreak="break-word">
            These runs can't be read and were not counted: {unreadable.join(", ")}. Run airflow-bookmarks doctor for
            repair options.
          </Alert.Description>
        </Alert.Root>
      )}
      {shards !== undefined && <Text>{shards}</Text>}
      {requested_by && approved_by && (
        <Text>
          Requested by {requested_by}, approved by {approved_by}.
        </Text>
      )}
    </>
  );
}
