import { Stack, Table, Text } from "@chakra-ui/react";
import type { Pending } from "../../api/model";
import { usePending } from "../../api/queries";
import { Ago } from "../../parts/Ago";
import { Mark } from "../../parts/Mark";
import { ScrollTable } from "../../parts/ScrollTable";
import { inBytes } from "../../words/number";
import { LeftOut } from "./LeftOut";
import { OnDemand } from "./OnDemand";
import { filesWords, firstWords, pendingWords, runsWords, skippedWords } from "./pending";
import { Recorded } from "./Recorded";

const COLUMNS = [
  { title: "Context" },
  { title: "Files", isNumber: true },
  { title: "Bytes", isNumber: true },
  { title: "Oldest" },
  { title: "Newest" },
  { title: "Skipped" },
  { title: "Source" },
];

/** What the next run would read, and finish first. */
export function NextRun({ job }: { job: string }) {
  return (
    <OnDemand
      title="Next run"
      hint="What a run would read if it started now. For folders and tables that the API server isn't allowed to access: what the last run recorded."
      job={job}
      useAnswer={usePending}
    >
      {(pending) => <Found pending={pending} />}
    </OnDemand>
  );
}

function Found({ pending }: { pending: Pending }) {
  return (
    <Stack gap={3}>
      <div>
        <Text>{pendingWords(pending)}</Text>
        {firstWords(pending).map((each) => (
          <Text key={each}>{each}</Text>
        ))}
        <Text fontSize="sm" color="fg.muted">
          Checked <Ago at={pending.looked_at} />
        </Text>
      </div>
      {pending.contexts.length > 0 && (
        <ScrollTable caption="What the next run would read" columns={COLUMNS}>
          {pending.contexts.map((row) => (
            <Table.Row key={row.ctx}>
              <Table.Cell fontWeight="medium">{row.ctx}</Table.Cell>
              <Table.Cell textAlign="end">{filesWords(row)}</Table.Cell>
              <Table.Cell textAlign="end">{row.bytes === null ? "unknown" : inBytes(row.bytes)}</Table.Cell>
              <Table.Cell>
                <Mark mark={row.oldest} />
              </Table.Cell>
              <Table.Cell>
                <Mark mark={row.newest} />
              </Table.Cell>
              <Table.Cell>{skippedWords(row) ?? "nothing"}</Table.Cell>
              <Table.Cell minW="14rem" whiteSpace="normal" wordBreak="break-all">
                {row.upstream ? `${row.upstream}, ${runsWords(row.runs) ?? "no run"}` : row.source}
                <Recorded row={row} />
                {row.unknown && row.recorded_by == null && (
                  <Text fontSize="xs" color="fg.muted" wordBreak="break-word">
                    {row.unknown}
                  </Text>
                )}
              </Table.Cell>
            </Table.Row>
          ))}
        </ScrollTable>
      )}
      <LeftOut contexts={pending.contexts} />
    </Stack>
  );
}
