import { Table } from "@chakra-ui/react";
import type { Job } from "../../api/model";
import { Ago } from "../../parts/Ago";
import { ScrollTable } from "../../parts/ScrollTable";
import { Section } from "../../parts/Section";
import { amountsOf, readWords, sumOf } from "../../words/amount";
import { inBytes } from "../../words/number";

type SideRun = Job["side_runs"][number];

const COLUMNS = [
  { title: "Option" },
  { title: "Window" },
  { title: "Read", isNumber: true },
  { title: "Bytes", isNumber: true },
  { title: "Run id" },
  { title: "Attempt", isNumber: true },
  { title: "When" },
];

/** Runs with another option: they read, and changed nothing. Nothing is shown where there is none. */
export function SideRuns({ job }: { job: Job }) {
  if (job.side_runs.length === 0) return null;
  return (
    <Section title="Side runs" hint="Runs with pause or disable: they read data and left the bookmark unchanged.">
      <ScrollTable caption="Side runs of the job" columns={COLUMNS}>
        {job.side_runs.map((side) => (
          <Table.Row key={`${side.run_id} ${side.attempt} ${side.made_at} ${side.option}`}>
            <Table.Cell>{side.option}</Table.Cell>
            <Table.Cell whiteSpace="nowrap">{windowWords(side)}</Table.Cell>
            <Read side={side} />
            <Table.Cell minW="14rem" wordBreak="break-all">
              {side.run_id}
            </Table.Cell>
            <Table.Cell textAlign="end">{side.attempt}</Table.Cell>
            <Table.Cell whiteSpace="nowrap">
              <Ago at={side.made_at} />
            </Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Section>
  );
}

function windowWords(side: SideRun): string {
  if (side.from_run !== null && side.to_run !== null) return `after run ${side.from_run}, up to run ${side.to_run}`;
  return side.option === "disable" ? "all input" : "all new input";
}

/** How much it read, in the units of its sources: what is not known is none, and not 0. */
function Read({ side }: { side: SideRun }) {
  const figures = Object.values(side.contexts);
  const bytes = sumOf(figures, "bytes");
  return (
    <>
      <Table.Cell textAlign="end" whiteSpace="nowrap">
        {readWords(amountsOf(figures)) ?? "–"}
      </Table.Cell>
      <Table.Cell textAlign="end" whiteSpace="nowrap">
        {bytes === null ? "–" : inBytes(bytes)}
      </Table.Cell>
    </>
  );
}
