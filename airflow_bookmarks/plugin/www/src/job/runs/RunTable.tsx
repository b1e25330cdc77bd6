import { Button, Flex, Link, Table, Text } from "@chakra-ui/react";
import { Link as RouterLink } from "react-router-dom";
import type { RunRow } from "../../api/model";
import { Ago } from "../../parts/Ago";
import { MarkMove } from "../../parts/Mark";
import { ScrollTable } from "../../parts/ScrollTable";
import { StateBadge } from "../../parts/StateBadge";
import { readWords } from "../../words/amount";
import { inBytes, inFull } from "../../words/number";
import { duration } from "../../words/time";
import { logOf } from "../task";
import { RewindButton } from "./RewindButton";
import { isUnmoved, keyOf, remarks, secondsOf } from "./run";

interface RunTableProps {
  runs: readonly RunRow[];
  onOpen: (run: RunRow) => void;
  mayRewind: (run: RunRow) => boolean;
  onRewind: (run: RunRow) => void;
}

const COLUMNS = [
  { title: "Run", isNumber: true },
  { title: "State" },
  { title: "Committed" },
  { title: "Window" },
  { title: "Read", isNumber: true },
  { title: "Rows read", isNumber: true },
  { title: "Rows written", isNumber: true },
  { title: "Bytes", isNumber: true },
  { title: "Duration", isNumber: true },
  { title: "Attempt", isNumber: true },
  { title: "Option" },
  { title: "Run id" },
  { title: "Error" },
  { title: "Rewind", isSilent: true },
];

/** Runs as a table; a run's number opens it. */
export function RunTable({ runs, onOpen, mayRewind, onRewind }: RunTableProps) {
  return (
    <ScrollTable caption="Runs of the job, newest first" columns={COLUMNS}>
      {runs.map((run) => (
        <Table.Row key={keyOf(run)}>
          <Table.Cell textAlign="end">
            <Button size="xs" variant="plain" px={1} fontWeight="semibold" onClick={() => onOpen(run)}>
              {run.number}
              <Text srOnly as="span">
                open
              </Text>
            </Button>
          </Table.Cell>
          <StateCell run={run} />
          <Table.Cell whiteSpace="nowrap">
            <Ago at={run.committed_at} />
          </Table.Cell>
          <Windows run={run} />
          <Table.Cell textAlign="end" whiteSpace="nowrap">
            {readWords(run) ?? "–"}
          </Table.Cell>
          <NumberCell value={run.rows} say={inFull} />
          <NumberCell value={run.rows_written} say={inFull} />
          <NumberCell value={run.bytes} say={inBytes} />
          <NumberCell value={secondsOf(run)} say={duration} />
          <NumberCell value={run.attempt} say={inFull} />
          <Table.Cell>{run.option}</Table.Cell>
          <RunId run={run} />
          <ErrorCell error={run.error} />
          <Table.Cell>{mayRewind(run) && <RewindButton run={run} onRewind={() => onRewind(run)} />}</Table.Cell>
        </Table.Row>
      ))}
    </ScrollTable>
  );
}

function StateCell({ run }: { run: RunRow }) {
  const said = remarks(run).filter((remark) => !remark.startsWith("attempt") && remark !== run.option);
  return (
    <Table.Cell whiteSpace="nowrap">
      <StateBadge state={run.state} />
      {said.length > 0 && (
        <Text as="span" fontSize="xs" color="fg.muted" ms={2}>
          {said.join(", ")}
        </Text>
      )}
    </Table.Cell>
  );
}

function NumberCell({ value, say }: { value: number | null | undefined; say: (value: number) => string }) {
  return (
    <Table.Cell textAlign="end" whiteSpace="nowrap">
      {value == null ? "–" : say(value)}
    </Table.Cell>
  );
}

function Windows({ run }: { run: RunRow }) {
  const windows = Object.entries(run.window);
  return (
    <Table.Cell fontSize="xs">
      {windows.map(([ctx, window]) => (
        <Text key={ctx} whiteSpace="nowrap">
          {windows.length > 1 && `${ctx}: `}
          {isUnmoved(window) ? (
            "no new input"
          ) : (
            <MarkMove before={window.before} after={window.after} order={run.order[ctx]} />
          )}
        </Text>
      ))}
    </Table.Cell>
  );
}

function RunId({ run }: { run: RunRow }) {
  return (
    <Table.Cell fontSize="xs">
      <Flex gap={2} alignItems="center" whiteSpace="nowrap">
        <Text maxW="18rem" truncate title={run.run_id ?? undefined}>
          {run.run_id}
        </Text>
        {run.task && (
          <Link asChild colorPalette="blue" aria-label={`Log of run ${run.number}, attempt ${run.task.try_number}`}>
            <RouterLink to={logOf(run.task)}>Log</RouterLink>
          </Link>
        )}
      </Flex>
    </Table.Cell>
  );
}

function ErrorCell({ error }: { error: string | null | undefined }) {
  return (
    <Table.Cell fontSize="xs" color="fg.error">
      {error && (
        <Text maxW="20rem" truncate title={error}>
          {error}
        </Text>
      )}
    </Table.Cell>
  );
}
