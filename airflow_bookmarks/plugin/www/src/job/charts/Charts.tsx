import { Button, SimpleGrid, Skeleton, Stack, Text } from "@chakra-ui/react";
import { useMemo } from "react";
import type { RunRow } from "../../api/model";
import { useEvents, useRuns } from "../../api/queries";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { Section } from "../../parts/Section";
import { count } from "../../words/number";
import { ContextPicker } from "../runs/ContextPicker";
import { contextsOf, isLiving } from "../runs/run";
import { useNamedContext } from "../runs/usePickedContext";
import { Chart } from "./Chart";
import { ChartLegend } from "./ChartLegend";
import { marksOf } from "./marks";
import { measuresOf } from "./measures";
import { type ChangeMark, changesOf, pointsOf } from "./points";
import { marksInWords } from "./told";

// The newest ones: each is a mark, and hundreds of them would hide the runs.
const MOST_EVENTS = 100;

/** What the runs of a job read and wrote and how long they took, over time, and what was out of the ordinary. */
export function Charts({ job }: { job: string }) {
  const query = useRuns(job);
  const events = useEvents(job, 0, MOST_EVENTS);
  const runs = useMemo(() => query.data?.pages.flatMap((page) => page.runs) ?? [], [query.data]);
  const changes = useMemo(() => changesOf(events.data?.events ?? []), [events.data]);
  if (query.error && !query.data) return <Problem error={query.error} onRetry={() => query.refetch()} />;
  if (query.isPending) return <Skeleton height={64} aria-label="Loading the runs" />;
  if (!runs.some(isLiving)) return <Empty title="No run has committed yet">Charts need at least one.</Empty>;
  return (
    <Stack gap={4} alignItems="flex-start">
      {events.error && <Problem error={events.error} onRetry={() => events.refetch()} />}
      <Drawn runs={runs} changes={changes} />
      {query.hasNextPage && (
        <Button size="sm" variant="outline" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
          More runs
        </Button>
      )}
    </Stack>
  );
}

function Drawn({ runs, changes }: { runs: readonly RunRow[]; changes: readonly ChangeMark[] }) {
  const contexts = useMemo(() => contextsOf(runs), [runs]);
  // Of a job with one context all is of that one.
  const named = useNamedContext(contexts);
  const ctx = contexts.length > 1 ? named : undefined;
  const charts = useMemo(
    () => measuresOf(runs, contexts, ctx).map((measure) => ({ measure, points: pointsOf(runs, measure) })),
    [runs, contexts, ctx],
  );
  const points = charts.flatMap((chart) => chart.points);
  return (
    <Section
      title="Runs over time"
      hint={`The last ${count(charts[0]?.points.length ?? 0, "run")}, oldest on the left. Arrow keys move along a chart.`}
      actions={<ContextPicker contexts={contexts} ctx={ctx} all="All contexts" />}
    >
      <Stack gap={2} mb={4}>
        <ChartLegend marks={marksOf(points, changes.length > 0)} />
        {marksInWords(charts[0]?.points ?? [], changes).map((sentence) => (
          <Text key={sentence} fontSize="sm" wordBreak="break-word">
            {sentence}
          </Text>
        ))}
      </Stack>
      <SimpleGrid columns={{ base: 1, lg: 2 }} gap={4} width="full">
        {charts.map(({ measure, points }) => (
          <Chart key={measure.id} measure={measure} points={points} changes={changes} />
        ))}
      </SimpleGrid>
      {contexts.length === 0 && (
        <Text fontSize="sm" color="fg.muted" mt={4}>
          There is no lag to show: no run has read a context.
        </Text>
      )}
    </Section>
  );
}
