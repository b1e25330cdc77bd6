import { Code, Table, Text } from "@chakra-ui/react";
import type { Job } from "../../api/model";
import { contextName } from "../../change/setting";
import { Empty } from "../../parts/Empty";
import { Mark } from "../../parts/Mark";
import { ScrollTable } from "../../parts/ScrollTable";
import { Section } from "../../parts/Section";
import { timesInZone } from "../../words/time";

const COLUMNS = [
  { title: "Context" },
  { title: "Watermark" },
  { title: "Run", isNumber: true },
  { title: "Position" },
  { title: "Kind" },
  { title: "Source" },
];

/** Where each source of a job stands. */
export function Contexts({ contexts }: { contexts: Job["contexts"] }) {
  return (
    <Section title="Contexts" hint="How far the job has read each of its sources.">
      {contexts.length === 0 ? (
        <Empty title="No context has a position">The next run that commits sets one.</Empty>
      ) : (
        <ScrollTable caption="Contexts of the job" columns={COLUMNS}>
          {contexts.map((context) => (
            <Table.Row key={context.ctx}>
              <Table.Cell fontWeight="medium">{contextName(context.ctx)}</Table.Cell>
              <Table.Cell>
                <Mark mark={context.watermark} order={context.order} />
              </Table.Cell>
              <Table.Cell textAlign="end">{context.run_number}</Table.Cell>
              <Table.Cell minW="16rem" whiteSpace="normal">
                {timesInZone(context.position)}
                {context.set_in_epoch !== null && (
                  <Text fontSize="xs" color="fg.muted">
                    set manually
                  </Text>
                )}
                {context.newest_partition != null && (
                  <Text fontSize="xs" color="fg.muted">
                    newest partition {context.newest_partition}
                  </Text>
                )}
                {context.gaps != null && context.gaps.missing > 0 && (
                  <Text fontSize="xs" color="fg.warning" wordBreak="break-word">
                    {context.gaps.words}
                  </Text>
                )}
              </Table.Cell>
              <Table.Cell>{context.kind}</Table.Cell>
              <Table.Cell minW="16rem" whiteSpace="normal">
                <Code size="sm" bg="transparent" px={0} wordBreak="break-all">
                  {context.source}
                </Code>
              </Table.Cell>
            </Table.Row>
          ))}
        </ScrollTable>
      )}
    </Section>
  );
}
