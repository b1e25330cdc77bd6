import { Stack, Text } from "@chakra-ui/react";
import type { RefObject } from "react";
import type { Job } from "../api/model";
import { inBytes } from "../words/number";
import { ChangeSummaryView } from "./ChangeSummaryView";
import { summaryOf } from "./changeSummary";
import { PreviewedDialog } from "./PreviewedDialog";
import { type Retry, retryName, retrySpec } from "./retry";
import { useSpecForm } from "./specForm";
import { fixOf } from "./words";

interface RetryDialogProps {
  job: Job;
  retry: Retry;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Have files read again that are set aside because they couldn't be parsed. */
export function RetryDialog({ job, retry, opener, onClosed }: RetryDialogProps) {
  const form = useSpecForm(job, { value: retrySpec(retry) });
  return (
    <PreviewedDialog
      form={form}
      job={job}
      title={`Retry files of ${job.job}`}
      opener={opener}
      onClosed={onClosed}
      nameOf={() => retryName(retry)}
      madeFor={({ version }) => `Based on version ${version} of the job.`}
      holderOf={({ holder }) => holder}
      choice={<What retry={retry} />}
      isReasonFirst
    >
      {(seen) => <ChangeSummaryView summary={summaryOf(seen)} fix={form.spec && fixOf(form.spec, job.may_look)} />}
    </PreviewedDialog>
  );
}

function What({ retry: { ctx, file } }: { retry: Retry }) {
  return (
    <Stack gap={2}>
      {file === null ? (
        <Text>The next run reads all files again that {ctx} has set aside.</Text>
      ) : (
        <>
          <Text>The next run reads this file of {ctx} again:</Text>
          <Text fontSize="sm" wordBreak="break-all">
            {file.path} ({inBytes(file.bytes)})
          </Text>
          <Text fontSize="sm" wordBreak="break-word">
            Set aside by run {file.run_number}: {file.error}
          </Text>
        </>
      )}
      <Text color="fg.muted">
        A file that still can't be parsed is set aside again if the job quarantines corrupt files; otherwise Spark
        handles it as usual, or the run stops.
      </Text>
    </Stack>
  );
}
