import { Table } from "@chakra-ui/react";
import type { Job } from "../api/model";
import { Watermark } from "../jobs/Watermark";
import { Ago } from "../parts/Ago";
import { JobLink } from "../parts/JobLink";
import { ScrollTable } from "../parts/ScrollTable";
import { Section } from "../parts/Section";
import { StateBadge } from "../parts/StateBadge";
import { inFull } from "../words/number";

const COLUMNS = [
  { title: "Shard" },
  { title: "State" },
  { title: "Run", isNumber: true },
  { title: "Epoch", isNumber: true },
  { title: "Last commit" },
  { title: "Watermark" },
];

/** The virtual shards of a sharded job, each with a link to its own page. */
export function Shards({ job }: { job: Job }) {
  return (
    <Section
      title="Virtual shards"
      hint="The job is sharded: each virtual shard has its own bookmark, runs and history."
    >
      <ScrollTable caption="Virtual shards of the job" columns={COLUMNS}>
        {job.shard_rows.map((row) => (
          <Table.Row key={row.job}>
            <Table.Cell>
              <JobLink job={row.job} />
            </Table.Cell>
            <Table.Cell>
              <StateBadge state={row.state} />
            </Table.Cell>
            <Table.Cell textAlign="end">{row.run_number == null ? "unknown" : inFull(row.run_number)}</Table.Cell>
            <Table.Cell textAlign="end">{row.epoch == null ? "unknown" : inFull(row.epoch)}</Table.Cell>
            <Table.Cell whiteSpace="nowrap">
              <Ago at={row.last_commit_at} />
            </Table.Cell>
            <Table.Cell>
              <Watermark of={row.watermark} orders={row.order} />
            </Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Section>
  );
}
