import { Code, Table } from "@chakra-ui/react";
import type { Job } from "../../api/model";
import { ScrollTable } from "../../parts/ScrollTable";
import { Section } from "../../parts/Section";

const COLUMNS = [{ title: "Name" }, { title: "Value" }];

/** What the scripts of a job keep from run to run; nothing where they keep nothing. */
export function StateValues({ values }: { values: Job["job_state"] }) {
  const names = Object.keys(values).sort();
  if (names.length === 0) return null;
  return (
    <Section title="State" hint="Values that the job's script keeps in job.state, as JSON.">
      <ScrollTable caption="Values of job.state" columns={COLUMNS}>
        {names.map((name) => (
          <Table.Row key={name}>
            <Table.Cell fontWeight="medium">{name}</Table.Cell>
            <Table.Cell>
              <Code size="sm" bg="transparent" px={0} wordBreak="break-all">
                {values[name]}
              </Code>
            </Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Section>
  );
}
