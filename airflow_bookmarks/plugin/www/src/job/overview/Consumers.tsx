import { Flex, Table, Text } from "@chakra-ui/react";
import type { Job } from "../../api/model";
import { Ago } from "../../parts/Ago";
import { JobLink } from "../../parts/JobLink";
import { ScrollTable } from "../../parts/ScrollTable";
import { Section } from "../../parts/Section";
import { StateBadge } from "../../parts/StateBadge";
import { count } from "../../words/number";
import { isRewound } from "./rewound";

const COLUMNS = [
  { title: "Job" },
  { title: "Has read up to run", isNumber: true },
  { title: "Seen in epoch", isNumber: true },
  { title: "Last read" },
];

/** Who reads a job, and how far. */
export function Consumers({ job }: { job: Job }) {
  const { consumers, hidden_consumers: hidden } = job;
  return (
    <Section title="Consumers" hint="Jobs that read what this one publishes.">
      {consumers.length > 0 && (
        <ScrollTable caption="Consumers of the job" columns={COLUMNS}>
          {consumers.map((consumer) => (
            <Table.Row key={consumer.job}>
              <Table.Cell>
                <Flex gap={2} alignItems="center" wrap="wrap">
                  <JobLink job={consumer.job} />
                  {isRewound(consumer, job) && <StateBadge state="REWOUND" />}
                </Flex>
              </Table.Cell>
              <Table.Cell textAlign="end">
                {consumer.run_number}
                {job.published != null && (
                  <Text as="span" color="fg.muted">
                    {` of ${job.published}`}
                  </Text>
                )}
              </Table.Cell>
              <Table.Cell textAlign="end">{consumer.epoch}</Table.Cell>
              <Table.Cell>
                <Ago at={consumer.updated_at} />
              </Table.Cell>
            </Table.Row>
          ))}
        </ScrollTable>
      )}
      {consumers.length === 0 && hidden === 0 && <Text fontSize="sm">No job reads this one.</Text>}
      {hidden > 0 && (
        <Text fontSize="sm" color="fg.muted" mt={2}>
          {count(hidden, "consumer")} not shown because you don't have access to {hidden === 1 ? "it" : "them"}.
        </Text>
      )}
    </Section>
  );
}
