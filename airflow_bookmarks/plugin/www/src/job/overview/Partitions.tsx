import { Table, Text } from "@chakra-ui/react";
import type { PartitionRow } from "../../api/model";
import { usePartitions } from "../../api/queries";
import { Ago } from "../../parts/Ago";
import { ScrollTable } from "../../parts/ScrollTable";
import { StateBadge } from "../../parts/StateBadge";
import { readWords } from "../../words/amount";
import { inFull } from "../../words/number";
import { timesInZone } from "../../words/time";
import { OnDemand } from "./OnDemand";

const COLUMNS = [
  { title: "Partition" },
  { title: "State" },
  { title: "Position" },
  { title: "Last run", isNumber: true },
  { title: "Committed" },
  { title: "Read", isNumber: true },
  { title: "Rows", isNumber: true },
];

/** What runs have read of each part of a source, those that fail first. */
export function Partitions({ job }: { job: string }) {
  return (
    <OnDemand
      title="Partitions"
      hint="How far each partition has been read, each by its own run. A partition that failed stays where it was."
      job={job}
      useAnswer={usePartitions}
    >
      {({ partitions, runs }) => (
        <>
          <ScrollTable caption="Partitions of the job" columns={COLUMNS}>
            {partitions.map((each) => (
              <PartitionLine key={`${each.ctx} ${each.partition}`} partition={each} />
            ))}
          </ScrollTable>
          <Text fontSize="sm" color="fg.muted">
            Based on the newest {inFull(runs)} runs.
          </Text>
        </>
      )}
    </OnDemand>
  );
}

function PartitionLine({ partition }: { partition: PartitionRow }) {
  return (
    <Table.Row>
      <Table.Cell minW="10rem" whiteSpace="normal" overflowWrap="anywhere">
        {partition.partition}
        <Text fontSize="xs" color="fg.muted">
          {partition.ctx}
        </Text>
      </Table.Cell>
      <Table.Cell minW="10rem" whiteSpace="normal" overflowWrap="anywhere">
        {partition.failed_since == null ? (
          <StateBadge state="OK" />
        ) : (
          <>
            <StateBadge state="FAILED" /> since <Ago at={partition.failed_since} />
            <Text fontSize="xs">{partition.error}</Text>
          </>
        )}
      </Table.Cell>
      <Table.Cell>{timesInZone(partition.position ?? "–")}</Table.Cell>
      <Table.Cell textAlign="end">{partition.last_run ?? "–"}</Table.Cell>
      <Table.Cell>
        <Ago at={partition.committed_at} />
      </Table.Cell>
      <Table.Cell textAlign="end" whiteSpace="nowrap">
        {readWords(partition) ?? "–"}
      </Table.Cell>
      <Table.Cell textAlign="end">{partition.rows == null ? "–" : inFull(partition.rows)}</Table.Cell>
    </Table.Row>
  );
}
