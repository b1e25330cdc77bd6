import { List, SimpleGrid, Text } from "@chakra-ui/react";
import type { Graph } from "../../api/model";
import { JobLink } from "../../parts/JobLink";
import { Section } from "../../parts/Section";
import { StateBadge } from "../../parts/StateBadge";
import { keyOfRead, nodeRemark, type Place, sides } from "./layout";

/** The graph in words, for people who can't use a picture. */
export function GraphList({ job, graph }: { job: string; graph: Graph }) {
  const { upstream, downstream } = sides(graph, job);
  return (
    <SimpleGrid columns={{ base: 1, lg: 2 }} gap={6}>
      <Section title="Upstream" hint="What this job depends on, nearest first.">
        <Places places={upstream} none="No upstream jobs or sources." />
      </Section>
      <Section title="Downstream" hint="What depends on this job, nearest first.">
        <Places places={downstream} none="No downstream jobs." />
      </Section>
    </SimpleGrid>
  );
}

function Places({ places, none }: { places: readonly Place[]; none: string }) {
  if (places.length === 0) return <Text fontSize="sm">{none}</Text>;
  return (
    <List.Root gap={2} listStyleType="none">
      {places.map((place) => (
        <List.Item
          key={place.node.name}
          borderWidth="1px"
          borderRadius="md"
          p={2}
          fontSize="sm"
          overflowWrap="anywhere"
        >
          <Name place={place} />
          {place.reads.map((read) => (
            <Text key={keyOfRead(read)} fontSize="xs" color="fg.muted" mt={1}>
              {read.job} reads {read.source} ({read.contexts.join(", ")}){" "}
              {read.lag && <StateBadge state={read.lag.state} />} {read.lag?.why}
            </Text>
          ))}
        </List.Item>
      ))}
    </List.Root>
  );
}

function Name({ place }: { place: Place }) {
  const { node } = place;
  const remark = nodeRemark(node);
  return (
    <>
      {node.kind === "job" && node.is_known ? <JobLink job={node.name} /> : node.name}
      <Text as="span" color="fg.muted">
        {node.kind === "job" ? "" : " (source)"}
        {remark ? ` (${remark})` : ""}
      </Text>
    </>
  );
}
