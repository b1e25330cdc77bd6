import { Button, Skeleton, Stack, Table } from "@chakra-ui/react";
import { useRef, useState } from "react";
import type { Job, QuarantinedFile } from "../../api/model";
import { useQuarantined } from "../../api/queries";
import { RetryDialog } from "../../change/RetryDialog";
import type { Retry } from "../../change/retry";
import { Ago } from "../../parts/Ago";
import { Pages } from "../../parts/Pages";
import { Problem } from "../../parts/Problem";
import { ScrollTable } from "../../parts/ScrollTable";
import { Section } from "../../parts/Section";
import { inBytes } from "../../words/number";

const LIMITS = [20, 50, 200];
const COLUMNS = [
  { title: "File" },
  { title: "Why" },
  { title: "Context" },
  { title: "Size", isNumber: true },
  { title: "Modified" },
  { title: "Found by run", isNumber: true },
];
const WITH_BUTTON = [...COLUMNS, { title: "Retry", isSilent: true }];

/** The files that are set aside because they can't be parsed, and what has them read again; nothing where none is. */
export function SetAside({ job }: { job: Job }) {
  const [retry, setRetry] = useState<Retry>();
  const opener = useRef<HTMLElement>(null);
  const has = job.contexts.some((context) => context.quarantined !== 0);
  const open = (next: Retry, button: HTMLElement) => {
    opener.current = button;
    setRetry(next);
  };
  return (
    <>
      {has && (
        <Section
          title="Files set aside"
          hint="These can't be parsed, so runs leave them out. Another version of a file is read as any new file."
        >
          <Files job={job} onRetry={open} />
        </Section>
      )}
      {/* Kept here, since what is retried leaves the list while the answer is still to be read. */}
      {retry !== undefined && (
        <RetryDialog job={job} retry={retry} opener={opener} onClosed={() => setRetry(undefined)} />
      )}
    </>
  );
}

interface FilesProps {
  job: Job;
  onRetry: (retry: Retry, button: HTMLElement) => void;
}

function Files({ job, onRetry }: FilesProps) {
  const [page, setPage] = useState(1);
  const [limit, setLimit] = useState(20);
  const query = useQuarantined(job.job, (page - 1) * limit, limit);
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  if (!query.data) return <Skeleton height={16} aria-label="Loading the files" />;
  const { files, total } = query.data;
  return (
    <Stack gap={2}>
      {job.may_change && (
        <Stack direction="row" gap={2} flexWrap="wrap">
          {job.contexts
            .filter((context) => context.quarantined !== 0)
            .map(({ ctx, quarantined }) => (
              <Button
                key={ctx}
                size="sm"
                variant="outline"
                aria-haspopup="dialog"
                onClick={(event) => onRetry({ ctx, file: null, count: quarantined }, event.currentTarget)}
              >
                Retry all of {ctx}
              </Button>
            ))}
        </Stack>
      )}
      <ScrollTable caption="Files set aside" columns={job.may_change ? WITH_BUTTON : COLUMNS}>
        {files.map((file) => (
          <Line
            key={`${file.ctx} ${file.path}`}
            file={file}
            {...(job.may_change
              ? { onRetry: (button: HTMLElement) => onRetry({ ctx: file.ctx, file, count: 1 }, button) }
              : {})}
          />
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

function Line({ file, onRetry }: { file: QuarantinedFile; onRetry?: (button: HTMLElement) => void }) {
  return (
    <Table.Row verticalAlign="top">
      <Table.Cell minW="14rem" whiteSpace="normal" wordBreak="break-all" fontSize="xs">
        {file.path}
      </Table.Cell>
      <Table.Cell minW="14rem" whiteSpace="normal" wordBreak="break-word">
        {file.error}
      </Table.Cell>
      <Table.Cell>{file.ctx}</Table.Cell>
      <Table.Cell textAlign="end" whiteSpace="nowrap">
        {inBytes(file.bytes)}
      </Table.Cell>
      <Table.Cell whiteSpace="nowrap">
        <Ago at={file.modified_at} mayLieAhead />
      </Table.Cell>
      <Table.Cell textAlign="end">{file.run_number}</Table.Cell>
      {onRetry !== undefined && (
        <Table.Cell textAlign="end">
          <Button
            size="xs"
            variant="outline"
            aria-haspopup="dialog"
            aria-label={`Retry ${file.path}`}
            onClick={(event) => onRetry(event.currentTarget)}
          >
            Retry
          </Button>
        </Table.Cell>
      )}
    </Table.Row>
  );
}
