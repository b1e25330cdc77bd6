import { Table, Text } from "@chakra-ui/react";
import type { LagRow } from "../../api/model";
import { useLag } from "../../api/queries";
import { JobLink } from "../../parts/JobLink";
import { ScrollTable } from "../../parts/ScrollTable";
import { StateBadge } from "../../parts/StateBadge";
import { behindWords, readWords } from "./lag";
import { OnDemand } from "./OnDemand";
import { Recorded } from "./Recorded";

const COLUMNS = [
  { title: "Source" },
  { title: "State" },
  { title: "Unread" },
  { title: "Read up to" },
  { title: "Contexts" },
  { title: "Why" },
];

/** How far a job is behind each of its sources. */
export function Lags({ job }: { job: string }) {
  return (
    <OnDemand
      title="Lag"
      hint="How far the job is behind its sources. For folders and tables that the API server isn't allowed to access: what the last run recorded."
      job={job}
      useAnswer={useLag}
    >
      {({ lags }) =>
        lags.length === 0 ? (
          <Text fontSize="sm">No sources</Text>
        ) : (
          <ScrollTable caption="Lag behind each source" columns={COLUMNS}>
            {lags.map((lag) => (
              <LagLine key={`${lag.kind} ${lag.source}`} lag={lag} />
            ))}
          </ScrollTable>
        )
      }
    </OnDemand>
  );
}

function LagLine({ lag }: { lag: LagRow }) {
  return (
    <Table.Row>
      <Table.Cell minW="12rem" whiteSpace="normal" wordBreak="break-all">
        {lag.kind === "upstream" ? <JobLink job={lag.source} /> : lag.source}
      </Table.Cell>
      <Table.Cell>
        <StateBadge state={lag.state} />
      </Table.Cell>
      <Table.Cell minW="8rem" whiteSpace="normal">
        {behindWords(lag)}
      </Table.Cell>
      <Table.Cell>{readWords(lag)}</Table.Cell>
      <Table.Cell minW="6rem" whiteSpace="normal" overflowWrap="anywhere">
        {lag.contexts.join(", ")}
      </Table.Cell>
      <Table.Cell minW="12rem" whiteSpace="normal" overflowWrap="anywhere">
        {lag.recorded_by == null ? lag.why : <Recorded row={lag} />}
      </Table.Cell>
    </Table.Row>
  );
}
