import { Alert, Heading, Skeleton, Stack } from "@chakra-ui/react";
import { useState } from "react";
import { ApiError } from "../api/client";
import type { Job, RunRow } from "../api/model";
import { useJob } from "../api/queries";
import { Changes } from "../change/Changes";
import { Requests } from "../change/Requests";
import { JobOrders } from "../parts/orders";
import { Problem } from "../parts/Problem";
import { BackToList } from "./BackToList";
import { JobHead } from "./JobHead";
import { JobTabs } from "./JobTabs";
import { Shards } from "./Shards";

/** One job: where it stands, what it did, and what can be done with it. */
export function JobPage({ job }: { job: string }) {
  const query = useJob(job);
  return (
    <Stack gap={4} minW={0}>
      <BackToList />
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
        <JobHead job={job} />
        {job.damaged != null && <Damage why={job.damaged} />}
        <Changes job={job} picked={undefined} onPicked={setPicked} />
        <Shards job={job} />
      </>
    );
  }
  if (job.state === "DAMAGED") {
    return (
      <>
        <JobHead job={job} />
        <Damage why={job.damaged} />
      </>
    );
  }
  return (
    <>
      <JobHead job={job} />
      {job.is_deleted && <Deleted />}
      <Changes job={job} picked={picked} onPicked={setPicked} />
      <Requests job={job} />
      <JobTabs job={job} onPicked={setPicked} />
    </>
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
