import { Skeleton, Stack, Table, Text } from "@chakra-ui/react";
import { useState } from "react";
import { useFiles } from "../../api/queries";
import { Ago } from "../../parts/Ago";
import { Pages } from "../../parts/Pages";
import { Problem } from "../../parts/Problem";
import { ScrollTable } from "../../parts/ScrollTable";
import { inBytes } from "../../words/number";

const LIMITS = [20, 50, 200];
const COLUMNS = [{ title: "Path" }, { title: "Size", isNumber: true }, { title: "Modified" }, { title: "Context" }];

/** The files that a run has read, a page at a time. */
export function RunFiles({ job, number }: { job: string; number: number }) {
  const [page, setPage] = useState(1);
  const [limit, setLimit] = useState(20);
  const query = useFiles(job, number, (page - 1) * limit, limit);
  if (query.error) return <Problem error={query.error} onRetry={() => query.refetch()} />;
  if (!query.data) return <Skeleton height={24} aria-label="Loading the files" />;
  const { files, total, unlisted } = query.data;
  const without = Object.entries(unlisted);
  if (total === 0 && without.length === 0) return <Text fontSize="sm">No files read</Text>;
  const notes = without.map(([ctx, kind]) => (
    <Text key={ctx} fontSize="sm">
      {ctx}: this run's read of {kind === "delta" || kind === "iceberg" ? "the table" : `the source (${kind})`} has no
      file list. What it read is shown above.
    </Text>
  ));
  if (total === 0) return <Stack gap={2}>{notes}</Stack>;
  return (
    <Stack gap={2}>
      {notes}
      <ScrollTable caption={`Files read by run ${number}`} columns={COLUMNS}>
        {files.map((file) => (
          <Table.Row key={`${file.ctx} ${file.path}`}>
            <Table.Cell minW="16rem" whiteSpace="normal" wordBreak="break-all" fontSize="xs">
              {file.path}
            </Table.Cell>
            <Table.Cell textAlign="end" whiteSpace="nowrap">
              {inBytes(file.bytes)}
            </Table.Cell>
            <Table.Cell whiteSpace="nowrap">
              <Ago at={file.modified_at} mayLieAhead />
            </Table.Cell>
            <Table.Cell>{file.ctx}</Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
      <Pages
        of="files"
        total={total}
        page={page}
        limit={limit}
        limits={LIMITS}
        onPage={setPage}
        onLimit={(next) => {
          setLimit(next);
          setPage(1);
        }}
      />
    </Stack>
  );
}
