import { Box, Progress, Skeleton, Table, VisuallyHidden } from "@chakra-ui/react";
import type { ReactNode } from "react";
import type { JobRow } from "../api/model";
import { isAllSelected, type Selection } from "../bulk/selection";
import { NAMED_ROWS } from "../parts/namedRows";
import { ColumnHead, type Sorting } from "./ColumnHead";
import { JobsTableRow } from "./JobsTableRow";
import { SelectBox } from "./SelectBox";

interface JobsTableProps {
  /** What the table is about, for screen readers. */
  caption: string;
  /** Undefined while there is nothing to show yet. */
  rows: readonly JobRow[] | undefined;
  /** Whether what is shown is the page before, and the one that was asked for is on its way. */
  isStale: boolean;
  sorting?: Sorting;
  selection: Selection;
  /** Told to put jobs into the selection, or to take them out. */
  onSelect: (rows: readonly JobRow[], isOn: boolean) => void;
}

// What takes the focus is scrolled to where the bar, which stays in sight while jobs are selected, does not cover it.
const BELOW_THE_BAR = { "& :is(a, button, input)": { scrollMarginTop: "6rem" } };
const COLUMNS = 8;
const ROWS_BEFORE = ["one", "two", "three", "four", "five", "six"];

/** Jobs, one a row. It scrolls sideways in its own box, except for their names. */
export function JobsTable({ caption, rows, isStale, sorting, selection, onSelect }: JobsTableProps) {
  return (
    <Box aria-busy={rows === undefined || isStale} position="relative">
      <Busy isShown={isStale} />
      <Table.ScrollArea
        position="relative" // so that what is there for screen readers alone makes the page no wider
        borderWidth="1px"
        borderRadius="md"
        opacity={isStale ? 0.6 : 1}
        transition="opacity 0.2s"
      >
        <Table.Root size="sm" interactive css={{ ...NAMED_ROWS, ...BELOW_THE_BAR }}>
          <Table.Caption captionSide="top" p={0} m={0}>
            <VisuallyHidden>{caption}</VisuallyHidden>
          </Table.Caption>
          <Heads
            sorting={sorting}
            selectAll={
              rows !== undefined && (
                <SelectBox
                  label="Select all jobs on this page"
                  isOn={isAllSelected(selection, rows)}
                  onSelect={(isOn) => onSelect(rows, isOn)}
                />
              )
            }
          />
          <Table.Body css={{ "& tr:last-child td": { borderBottomWidth: 0 } }}>
            {rows === undefined ? (
              <RowsBefore />
            ) : (
              rows.map((row) => (
                <JobsTableRow
                  key={row.job}
                  row={row}
                  isSelected={selection.has(row.job)}
                  onSelect={(isOn) => onSelect([row], isOn)}
                />
              ))
            )}
          </Table.Body>
        </Table.Root>
      </Table.ScrollArea>
    </Box>
  );
}

function Heads({ sorting, selectAll }: { sorting: Sorting | undefined; selectAll: ReactNode }) {
  return (
    <Table.Header bg="bg.subtle">
      <Table.Row>
        <ColumnHead
          columns={
            sorting
              ? [
                  ["Job", "job"],
                  ["DAG", "dag_id"],
                ]
              : [["Job"]]
          }
          sorting={sorting}
          before={selectAll}
        />
        <ColumnHead columns={[["Health", "health"]]} sorting={sorting} />
        <ColumnHead columns={[["State", "state"]]} sorting={sorting} />
        <ColumnHead columns={[["Last commit", "last_commit_at"]]} sorting={sorting} />
        <ColumnHead columns={[["Watermark"]]} sorting={sorting} />
        <ColumnHead columns={[["Lag"]]} sorting={sorting} />
        <ColumnHead columns={[["Epoch", "epoch"]]} sorting={sorting} isNumber />
        <ColumnHead columns={[["Runs", "run_number"]]} sorting={sorting} isNumber />
      </Table.Row>
    </Table.Header>
  );
}

/** A line that moves over the table, and words for who doesn't see it. */
function Busy({ isShown }: { isShown: boolean }) {
  return (
    <>
      <VisuallyHidden role="status">{isShown ? "Loading jobs" : ""}</VisuallyHidden>
      {isShown && (
        <Progress.Root
          value={null}
          size="xs"
          position="absolute"
          top={0}
          insetX={0}
          zIndex={1}
          aria-label="Loading jobs"
        >
          <Progress.Track bg="transparent">
            <Progress.Range />
          </Progress.Track>
        </Progress.Root>
      )}
    </>
  );
}

function RowsBefore() {
  return ROWS_BEFORE.map((name) => (
    <Table.Row key={name}>
      <Table.Cell colSpan={COLUMNS}>
        <Skeleton height={8} />
      </Table.Cell>
    </Table.Row>
  ));
}
