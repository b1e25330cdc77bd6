import { Flex, Stack } from "@chakra-ui/react";
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useRef, useState } from "react";
import type { JobRow } from "../api/model";
import { SelectionBar } from "../bulk/SelectionBar";
import { NONE, type Selection, selectionWith } from "../bulk/selection";
import { Pages } from "../parts/Pages";
import { Problem } from "../parts/Problem";
import { Stale } from "../parts/Stale";
import { Unjudged } from "../parts/Unjudged";
import { Updated } from "../parts/Updated";
import type { Sorting } from "./ColumnHead";
import { JobsTable } from "./JobsTable";
import { LIMITS, type ListQuery } from "./listQuery";
import { NoSuchPage } from "./NoJobs";
import { RunBarsLegend } from "./RunBars";

export interface JobList {
  jobs: JobRow[];
  total: number;
  health_as_of?: string | null;
  unjudged?: number;
}

interface JobsListProps {
  caption: string;
  listQuery: ListQuery;
  onAsk: (change: Partial<ListQuery>) => void;
  answer: UseQueryResult<JobList>;
  sorting?: Sorting;
  /** What is shown when no job is what was asked for. */
  empty: ReactNode;
}

/** A page of jobs, with what stands in its place: a problem, nothing yet, nothing at all. */
export function JobsList({ caption, listQuery, onAsk, answer, sorting, empty }: JobsListProps) {
  const { data, error, isPlaceholderData, refetch } = answer;
  const top = useRef<HTMLDivElement>(null);
  // Of the list and not of its page, so that it stays while pages are turned.
  const [selection, setSelection] = useState<Selection>(NONE);
  const isEmpty = data?.jobs.length === 0 && !isPlaceholderData;
  const problem = error && <Problem error={error} onRetry={() => refetch()} />;
  if (error && data === undefined) return problem;
  return (
    <Stack ref={top} gap={3} tabIndex={-1} outline="none">
      {problem}
      <Stale of={answer} />
      <Unjudged jobs={data?.unjudged} />
      {/* What can be done with selected jobs stays in sight, however far down one selects: at the edge of Airflow's box. */}
      <Flex
        justifyContent="space-between"
        gap={3}
        wrap="wrap"
        minH={8}
        py={1}
        bg="bg"
        {...(selection.size > 0 ? { position: "sticky", top: -3, zIndex: 2 } : {})}
      >
        <SelectionBar
          selection={selection}
          rows={data?.jobs ?? []}
          onSelection={setSelection}
          onClear={() => {
            setSelection(NONE);
            top.current?.focus(); // the link that was pressed is gone
          }}
        />
        <Updated of={answer} healthAsOf={data?.health_as_of} onRefresh={() => void refetch()} />
      </Flex>
      {!isEmpty ? (
        <JobsTable
          caption={caption}
          rows={data?.jobs}
          isStale={isPlaceholderData}
          selection={selection}
          onSelect={(rows, isOn) => setSelection((now) => selectionWith(now, rows, isOn))}
          {...(sorting ? { sorting } : {})}
        />
      ) : data.total === 0 ? (
        empty
      ) : (
        <NoSuchPage page={listQuery.page} onFirst={() => onAsk({ page: 1 })} />
      )}
      {data !== undefined && <RunBarsLegend rows={data.jobs} />}
      {data !== undefined && !isEmpty && (
        <Pages
          of="jobs"
          total={data.total}
          page={listQuery.page}
          limit={listQuery.limit}
          limits={LIMITS}
          onPage={(page) => {
            onAsk({ page });
            // The pages are turned below the list, and the next one is read from its top.
            top.current?.scrollIntoView({ block: "start" });
          }}
          onLimit={(limit) => onAsk({ limit })}
        />
      )}
    </Stack>
  );
}
