import { Skeleton, Stack, Text } from "@chakra-ui/react";
import type { Graph } from "../../api/model";
import { useGraph } from "../../api/queries";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { Section } from "../../parts/Section";
import { GraphList } from "./GraphList";
import { GraphPicture } from "./GraphPicture";
import { hiddenWords } from "./layout";

// Beyond this a picture shows nothing but lines; the list still does.
const MOST_NODES = 150;

/** What a job depends on, and what depends on it: as a picture and as a list. */
export function JobGraph({ job }: { job: string }) {
  const query = useGraph(job);
  if (query.error) return <Problem error={query.error} onRetry={() => query.refetch()} />;
  if (!query.data) return <Skeleton height={64} aria-label="Loading the graph" />;
  return <Found job={job} graph={query.data} />;
}

function Found({ job, graph }: { job: string; graph: Graph }) {
  const hidden = hiddenWords(graph.hidden);
  const isAlone = graph.reads.length === 0;
  return (
    <Stack gap={6}>
      {hidden && <Text fontSize="sm">{hidden}</Text>}
      {isAlone && <Empty title="No connections">The job has no source yet, and no other job reads it.</Empty>}
      {!isAlone && (
        <Section
          title="Graph"
          hint="Data flows from left to right. A badge shows whether a job keeps up with what it reads."
        >
          {graph.nodes.length <= MOST_NODES ? (
            <GraphPicture job={job} graph={graph} />
          ) : (
            <Text fontSize="sm">
              {graph.nodes.length} jobs and sources are too many to draw. They are listed below.
            </Text>
          )}
        </Section>
      )}
      {!isAlone && <GraphList job={job} graph={graph} />}
    </Stack>
  );
}
