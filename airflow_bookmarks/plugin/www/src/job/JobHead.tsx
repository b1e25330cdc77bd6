import { Alert, Box, DataList, Flex, Heading, Link, Stack, Text } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { Link as RouterLink } from "react-router-dom";
import type { HealthRow, Job } from "../api/model";
import { Ago } from "../parts/Ago";
import { CopyButton } from "../parts/CopyButton";
import { ExplainedBadge } from "../parts/ExplainedBadge";
import { HealthBadge, paletteOfHealth } from "../parts/HealthBadge";
import { JobLink } from "../parts/JobLink";
import { StateBadge } from "../parts/StateBadge";
import { inFull } from "../words/number";
import { numbersOf, shardWords, stillToDo, taskWords } from "./health";
import { dagPage, logOf, taskPage } from "./task";

/** Which job it is, where it stands, who works on it, and what it still owes. */
export function JobHead({ job }: { job: Job }) {
  const owed = stillToDo(job);
  return (
    <Stack as="header" gap={3} minW={0}>
      <Flex gap={2} alignItems="center" wrap="wrap">
        <Heading as="h1" size="lg" wordBreak="break-all">
          {job.job}
        </Heading>
        <CopyButton text={job.job} what="job name" />
        {job.health && <HealthBadge state={job.health.state} />}
        <StateBadge state={job.state} />
        {job.protected && (
          <ExplainedBadge variant="outline" means="changes need a second person's approval">
            protected
          </ExplainedBadge>
        )}
      </Flex>
      {job.health && <HealthWords health={job.health} failedTask={job.failed_task} />}
      <Facts job={job} />
      {owed.length > 0 && (
        <Alert.Root status="info" size="sm">
          <Alert.Indicator />
          <Alert.Content>
            {owed.map((each) => (
              <Text key={each}>{each}</Text>
            ))}
          </Alert.Content>
        </Alert.Root>
      )}
    </Stack>
  );
}

const WELL: readonly string[] = ["OK", "NEW"];
// What a person did or is asked for, and no trouble.
const BY_A_PERSON: readonly string[] = ["WAITING", "TAKEN BACK"];

/** How grave a state of health is: as the colour of its badge says. */
function statusOf(state: string): "error" | "warning" | "info" {
  if (BY_A_PERSON.includes(state)) return "info";
  return paletteOfHealth(state) === "red" ? "error" : "warning";
}

/** What is wrong with the job, worst first, each with its reason and since when; nothing of one that is well. */
function HealthWords({ health, failedTask }: { health: HealthRow; failedTask: Job["failed_task"] }) {
  const notes = [health, ...health.more].filter(({ state }) => !WELL.includes(state));
  if (notes.length === 0) return null;
  return (
    <Alert.Root status={statusOf(health.state)} size="sm" role="status">
      <Alert.Indicator />
      <Alert.Content>
        {notes.map(({ state, reason, since }) => (
          <Text key={`${state} ${reason}`} wordBreak="break-word">
            <b>{state}</b>
            {since && (
              <>
                {", "}
                <Ago at={since} />
              </>
            )}
            : {reason}
            {state === "FAILED" && failedTask && (
              <>
                {" "}
                <PageLink to={logOf(failedTask)}>Task log</PageLink>
              </>
            )}
          </Text>
        ))}
      </Alert.Content>
    </Alert.Root>
  );
}

function Facts({ job }: { job: Job }) {
  const isMixed = job.shards != null && job.run_number == null;
  return (
    <Box borderWidth="1px" borderRadius="md" bg="bg.subtle" p={3}>
      <DataList.Root display="flex" flexDirection="row" flexWrap="wrap" columnGap={8} rowGap={3} size="sm">
        {job.dag_id && (
          <Fact title="DAG">
            <PageLink to={dagPage(job.dag_id)}>{job.dag_id}</PageLink>
          </Fact>
        )}
        {job.dag_id && job.task_id && (
          <Fact title="Task">
            <PageLink to={taskPage(job.dag_id, job.task_id)}>{taskWords(job)}</PageLink>
          </Fact>
        )}
        {job.former_owners.length > 0 && <Fact title="Previous owners">{job.former_owners.join(", ")}</Fact>}
        {job.shared_with.length > 0 && <Fact title="Shared with">{job.shared_with.join(", ")}</Fact>}
        <Fact title="Last commit">
          <Ago at={job.last_commit_at} />
        </Fact>
        {job.shards != null && <Fact title="Virtual shards">{shardWords(job)}</Fact>}
        {job.sharded_job != null && (
          <Fact title="Virtual shard of">
            <JobLink job={job.sharded_job} />
          </Fact>
        )}
        {!isMixed && <RunFact job={job} />}
        {job.lag && (
          <Fact title="Lag">
            <StateBadge state={job.lag} />
          </Fact>
        )}
        <Fact title="Epoch">
          {job.epoch == null ? (job.shards != null ? "differs by shard" : "unknown") : inFull(job.epoch)}
          {job.version != null && (
            <Text as="span" fontSize="xs" color="fg.muted" ms={2}>
              version {inFull(job.version)}
            </Text>
          )}
        </Fact>
        {job.holder && (
          <Fact title={job.state === "EXPIRED" ? "Was held by" : "Held by"}>
            <HolderWords holder={job.holder} isOver={job.state === "EXPIRED"} />
          </Fact>
        )}
      </DataList.Root>
    </Box>
  );
}

function RunFact({ job }: { job: Job }) {
  const { title, said, last } = numbersOf(job);
  return (
    <Fact title={title}>
      {said}
      {last !== undefined && (
        <Text as="span" fontSize="xs" color="fg.muted" ms={2} title="later runs were undone or read nothing">
          {last}
        </Text>
      )}
    </Fact>
  );
}

function HolderWords({ holder, isOver }: { holder: NonNullable<Job["holder"]>; isOver: boolean }) {
  return (
    <Text as="span" wordBreak="break-word">
      run {holder.run_id}, attempt {holder.attempt}, since <Ago at={holder.since} />; its lease
      {isOver ? " expired " : " expires "}
      <Ago at={holder.until} mayLieAhead={!isOver} />
    </Text>
  );
}

function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <DataList.Item flexDirection="column" alignItems="flex-start" gap={0} minW={0}>
      <DataList.ItemLabel minW={0}>{title}</DataList.ItemLabel>
      <DataList.ItemValue minW={0} display="block">
        {children}
      </DataList.ItemValue>
    </DataList.Item>
  );
}

function PageLink({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Link asChild colorPalette="blue" wordBreak="break-all">
      <RouterLink to={to}>{children}</RouterLink>
    </Link>
  );
}
