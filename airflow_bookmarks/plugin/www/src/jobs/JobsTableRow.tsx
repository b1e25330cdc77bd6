import { Box, Flex, HStack, Icon, Link, Table, Text, VisuallyHidden } from "@chakra-ui/react";
import { Link as RouterLink } from "react-router-dom";
import type { JobRow } from "../api/model";
import { shardWords } from "../job/health";
import { logOf } from "../job/task";
import { Ago } from "../parts/Ago";
import { HealthBadge } from "../parts/HealthBadge";
import { JobLink } from "../parts/JobLink";
import { StateBadge } from "../parts/StateBadge";
import { inFull } from "../words/number";
import { RunBars } from "./RunBars";
import { SelectBox } from "./SelectBox";
import { Watermark } from "./Watermark";

interface JobsTableRowProps {
  row: JobRow;
  isSelected: boolean;
  onSelect: (isOn: boolean) => void;
}

/** One job of the list. */
export function JobsTableRow({ row, isSelected, onSelect }: JobsTableRowProps) {
  return (
    <Table.Row verticalAlign="top" {...(isSelected ? { "data-selected": "" } : {})}>
      <Table.Cell minW={{ base: "9rem", md: "14rem" }}>
        {/* In the cell of the name: of a table that scrolls sideways this column alone stays where it is. */}
        <Flex gap={2} alignItems="flex-start">
          <Box pt={0.5}>
            <SelectBox label={`Select ${row.job}`} isOn={isSelected} onSelect={onSelect} />
          </Box>
          <Box minW={0}>
            <JobName row={row} />
          </Box>
        </Flex>
      </Table.Cell>
      <Table.Cell minW="10rem" maxW="22rem" whiteSpace="normal">
        <JobHealth row={row} />
      </Table.Cell>
      <Table.Cell>
        <JobState row={row} />
      </Table.Cell>
      <Table.Cell whiteSpace="nowrap">
        <Ago at={row.last_commit_at} />
      </Table.Cell>
      <Table.Cell>
        <Watermark of={row.watermark} orders={row.order} />
      </Table.Cell>
      <Table.Cell>
        {row.lag ? (
          <StateBadge state={row.lag} />
        ) : (
          <Nothing why={row.shards == null ? "reads no other job" : "differs by shard"} />
        )}
      </Table.Cell>
      <Table.Cell textAlign="end">
        {row.epoch == null ? (
          <Nothing why={row.shards == null ? "epoch unknown" : "differs by shard"} />
        ) : (
          inFull(row.epoch)
        )}
      </Table.Cell>
      <Table.Cell>
        <Flex gap={3} justifyContent="flex-end">
          <Text>{row.run_number == null ? "" : inFull(row.run_number)}</Text>
          <RunBars runs={row.runs} />
        </Flex>
      </Table.Cell>
    </Table.Row>
  );
}

function JobName({ row }: { row: JobRow }) {
  return (
    <>
      <JobLink job={row.job} />
      <Owner row={row} />
      {row.shards != null && (
        <Text fontSize="xs" color="fg.muted">
          virtual shards: {shardWords(row)}
        </Text>
      )}
      {row.damaged && (
        <Text fontSize="xs" colorPalette="red" color="colorPalette.fg" lineClamp={2} title={row.damaged}>
          {row.damaged}
        </Text>
      )}
    </>
  );
}

/** The DAG and the task that ran the job last, as links to Airflow's own pages of them. */
function Owner({ row }: { row: JobRow }) {
  if (!row.dag_id) return null;
  const dag = `/dags/${encodeURIComponent(row.dag_id)}`;
  const index = row.map_index == null || row.map_index < 0 ? "" : ` [${row.map_index}]`;
  return (
    <Text fontSize="xs" color="fg.muted" wordBreak="break-all">
      <Link asChild color="fg.muted">
        <RouterLink to={dag}>{row.dag_id}</RouterLink>
      </Link>
      {row.task_id && (
        <>
          {" / "}
          <Link asChild color="fg.muted">
            <RouterLink to={`${dag}/tasks/${encodeURIComponent(row.task_id)}`}>{row.task_id}</RouterLink>
          </Link>
          {index}
        </>
      )}
    </Text>
  );
}

/** How the job is, why, and since when; of one that is well the word is enough. */
function JobHealth({ row }: { row: JobRow }) {
  if (row.health == null) return <Nothing why="its state can't be read" />;
  const { state, reason, since } = row.health;
  return (
    <Box>
      <HealthBadge state={state} />
      {state !== "OK" && (
        <Text fontSize="xs" color="fg.muted" lineClamp={2} wordBreak="break-word" title={reason}>
          {since && (
            <>
              <Ago at={since} />:{" "}
            </>
          )}
          {reason}
        </Text>
      )}
      {row.failed_task && (
        <Link asChild fontSize="xs" colorPalette="blue">
          <RouterLink to={logOf(row.failed_task)}>
            Task log<VisuallyHidden> of the failed attempt of {row.job}</VisuallyHidden>
          </RouterLink>
        </Link>
      )}
    </Box>
  );
}

function JobState({ row }: { row: JobRow }) {
  return (
    <Box>
      <HStack gap={1}>
        <StateBadge state={row.state} />
        {row.protected && <Lock />}
      </HStack>
      {row.holder && (
        <Text fontSize="xs" color="fg.muted" truncate maxW="11rem" title={`held by run ${row.holder.run_id}`}>
          attempt {row.holder.attempt}, <Ago at={row.holder.since} />
        </Text>
      )}
    </Box>
  );
}

function Lock() {
  return (
    <Icon size="sm" color="fg.muted" aria-hidden={false} asChild>
      <svg viewBox="0 0 24 24" role="img" aria-label="protected">
        <title>protected: changes need a second person's approval</title>
        <path
          fill="currentColor"
          d="M17 9h-1V7a4 4 0 0 0-8 0v2H7a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2v-8a2 2 0 0 0-2-2Zm-7-2a2 2 0 0 1 4 0v2h-4V7Z"
        />
      </svg>
    </Icon>
  );
}

function Nothing({ why }: { why: string }) {
  return (
    <Text color="fg.muted" title={why}>
      –
    </Text>
  );
}
