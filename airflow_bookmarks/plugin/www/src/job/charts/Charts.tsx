import { Button, SimpleGrid, Skeleton, Stack, Text } from "@chakra-ui/react";
import { useMemo } from "react";
import { useRuns } from "../../api/queries";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { Section } from "../../parts/Section";
import { count } from "../../words/number";
import { ContextPicker } from "../runs/ContextPicker";
import { contextsOf } from "../runs/run";
import { usePickedContext } from "../runs/usePickedContext";
import { Chart } from "./Chart";
import { measuresOf, pointsOf } from "./charts";

/** What the runs of a job read, over time. */
export function Charts({ job }: { job: string }) {
  const query = useRuns(job);
  const runs = useMemo(() => query.data?.pages.flatMap((page) => page.runs) ?? [], [query.data]);
  const contexts = useMemo(() => contextsOf(runs), [runs]);
  const ctx = usePickedContext(contexts);
  const charts = measuresOf(ctx, runs).map((measure) => ({ measure, points: pointsOf(runs, measure) }));
  const points = charts[0]?.points.length ?? 0;
  if (query.error && !query.data) return <Problem error={query.error} onRetry={() => query.refetch()} />;
  if (query.isPending) return <Skeleton height={64} aria-label="Loading the runs" />;
  if (points === 0) return <Empty title="No run has committed yet">Charts need at least one.</Empty>;
  const more = query.hasNextPage && (
    <Button size="sm" variant="outline" loading={query.isFetchingNextPage} onClick={() => query.fetchNextPage()}>
      More runs
    </Button>
  );
  return (
    <Section
      title="What the runs read"
      hint={`The last ${count(points, "committed run")}, oldest on the left. Arrow keys move along a chart.`}
      actions={<ContextPicker contexts={contexts} ctx={ctx} />}
    >
      <Stack gap={4} alignItems="flex-start">
        <SimpleGrid columns={{ base: 1, lg: 2 }} gap={4} width="full">
          {charts.map(({ measure, points }) => (
            <Chart key={measure.id} measure={measure} points={points} />
          ))}
        </SimpleGrid>
        {more}
        {ctx === undefined && (
          <Text fontSize="sm" color="fg.muted">
            There is no lag to show: no run has read a context.
          </Text>
        )}
      </Stack>
    </Section>
  );
}
