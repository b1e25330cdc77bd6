import { Box, Button, Collapsible, Heading, Stack, Table, Text } from "@chakra-ui/react";
import type { PendingRow } from "../../api/model";
import { Ago } from "../../parts/Ago";
import { ScrollTable } from "../../parts/ScrollTable";
import { count, inBytes, inFull } from "../../words/number";
import { type LeftOutRow, leftOut, moreWords } from "./leftOut";

const COLUMNS = [
  { title: "Reason" },
  { title: "Context" },
  { title: "Count", isNumber: true },
  { title: "Meaning" },
  { title: "To have it read" },
  { title: "Examples" },
];

/** What the next run would leave out, by reason, with some of the files; nothing where it would leave out none. */
export function LeftOut({ contexts }: { contexts: readonly PendingRow[] }) {
  const rows = leftOut(contexts);
  if (rows.length === 0) return null;
  return (
    <Box>
      <Heading as="h3" size="xs" mb={2}>
        Left out
      </Heading>
      <ScrollTable caption="What the next run would leave out" columns={COLUMNS}>
        {rows.map((row) => (
          <Table.Row key={`${row.ctx} ${row.reason}`}>
            <Table.Cell fontWeight="medium">{row.reason.replaceAll("_", " ")}</Table.Cell>
            <Table.Cell>{row.ctx}</Table.Cell>
            <Table.Cell textAlign="end">{inFull(row.count)}</Table.Cell>
            <Table.Cell minW="14rem" whiteSpace="normal">
              {row.meaning?.what ?? "–"}
            </Table.Cell>
            <Table.Cell minW="10rem" whiteSpace="normal">
              {row.meaning?.later ?? "–"}
            </Table.Cell>
            <Table.Cell minW="16rem" whiteSpace="normal">
              <Examples row={row} />
            </Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Box>
  );
}

function Examples({ row }: { row: LeftOutRow }) {
  if (row.examples.length === 0) return "–";
  const more = moreWords(row);
  return (
    <Collapsible.Root lazyMount>
      <Collapsible.Trigger asChild>
        <Button size="xs" variant="ghost" aria-label={`Examples: ${row.reason.replaceAll("_", " ")}, ${row.ctx}`}>
          {count(row.examples.length, "example")}
        </Button>
      </Collapsible.Trigger>
      <Collapsible.Content>
        <Stack gap={1} fontSize="xs" pt={1}>
          {row.examples.map((file) => (
            <Text key={file.path} wordBreak="break-all">
              {file.path} ({inBytes(file.bytes)}, <Ago at={file.modified_at} mayLieAhead />)
            </Text>
          ))}
          {more !== undefined && <Text color="fg.muted">{more}</Text>}
        </Stack>
      </Collapsible.Content>
    </Collapsible.Root>
  );
}
