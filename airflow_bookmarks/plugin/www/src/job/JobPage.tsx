import { Alert, Flex, Heading, Skeleton, Stack } from "@chakra-ui/react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../api/client";
import type { Job, RunRow } from "../api/model";
import { useJob } from "../api/queries";
import { Changes } from "../change/Changes";
import { Requests } from "../change/Requests";
import { Boundary } from "../parts/Boundary";
import { JobOrders } from "../parts/orders";
import { Problem } from "../parts/Problem";
import { Stale } from "../parts/Stale";
import { Updated } from "../parts/Updated";
import { useTitle } from "../parts/useTitle";
import { BackToList } from "./BackToList";
import { JobHead } from "./JobHead";
import { JobTabs } from "./JobTabs";
import { Shards } from "./Shards";

/** One job: where it stands, what it did, and what can be done with it. */
export function JobPage({ job }: { job: string }) {
  const query = useJob(job);
  const queries = useQueryClient();
  // With all that is open of it: each tab asks for its own part.
  const refresh = () => void queries.invalidateQueries({ queryKey: ["job", job] });
  useTitle(job);
  return (
    <Stack gap={4} minW={0}>
      <Flex gap={3} wrap="wrap" alignItems="center" justifyContent="space-between">
        <BackToList />
        <Updated of={query} onRefresh={refresh} />
      </Flex>
      <Stale of={query} />
      {query.error && <Trouble job={job} error={query.error} onRetry={() => query.refetch()} />}
      {query.data && !isDamage(query.error) && (
        <JobOrders value={query.data.order}>
          <Known job={query.data} />
        </JobOrders>
      )}
      {query.isPending && <Waiting />}
    </Stack>
  );
}

function isDamage(error: Error | null): boolean {
  return error instanceof ApiError && error.refusal?.error === "StateCorruptError";
}

function Trouble({ job, error, onRetry }: { job: string; error: Error; onRetry: () => void }) {
  if (!isDamage(error)) return <Problem error={error} onRetry={onRetry} />;
  return (
    <>
      <Heading as="h1" size="lg" wordBreak="break-all">
        {job}
      </Heading>
      <Damage why={error.message} />
    </>
  );
}

function Known({ job }: { job: Job }) {
  const [picked, setPicked] = useState<RunRow>();
  if (job.shards != null) {
    return (
      <>
        <Head job={job} />
        {job.damaged != null && <Damage why={job.damaged} />}
        <Boundary what="What can be changed">
          <Changes job={job} picked={undefined} onPicked={setPicked} />
        </Boundary>
        <Boundary what="The list of shards">
          <Shards job={job} />
        </Boundary>
      </>
    );
  }
  if (job.state === "DAMAGED") {
    return (
      <>
        <Head job={job} />
        <Damage why={job.damaged} />
      </>
    );
  }
  return (
    <>
      <Head job={job} />
      {job.is_deleted && <Deleted />}
      <Boundary what="What can be changed">
        <Changes job={job} picked={picked} onPicked={setPicked} />
      </Boundary>
      <Boundary what="The list of requests">
        <Requests job={job} />
      </Boundary>
      <JobTabs job={job} onPicked={setPicked} />
    </>
  );
}

function Head({ job }: { job: Job }) {
  return (
    <Boundary what="The head of the job">
      <JobHead job={job} />
    </Boundary>
  );
}

function Damage({ why }: { why: string | null | undefined }) {
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title>The state of this job can't be read</Alert.Title>
        <Alert.Description wordBreak="break-word">
          {why ?? "The state store holds something that isn't a bookmark."} Run airflow-bookmarks doctor for repair
          options.
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}

function Deleted() {
  return (
    <Alert.Root status="info">
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title>This bookmark was deleted</Alert.Title>
        <Alert.Description>
          The job won't appear in any list until it runs again. Undo restores the bookmark.
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}

function Waiting() {
  return (
    <Stack gap={4} aria-busy aria-label="Loading the job" role="status">
      <Skeleton height={8} maxW="sm" />
      <Skeleton height={16} />
      <Skeleton height={64} />
    </Stack>
  );
}
