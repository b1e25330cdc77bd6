import { Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Changed, Job, RequestRow } from "../api/model";
import { useApprove } from "../api/queries";
import { ChangeSummaryView } from "./ChangeSummaryView";
import { summaryOfRequest } from "./changeSummary";
import { HolderChoice } from "./HolderChoice";
import { OneStepDialog } from "./OneStepDialog";
import { useSending } from "./sending";
import { troubleOf } from "./trouble";
import { fixOfRequest, inSentence, requestName, withoutPreview } from "./words";

interface ApproveDialogProps {
  job: Job;
  request: RequestRow;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Approve what somebody else asked for: it is made at once. */
export function ApproveDialog({ job, request, opener, onClosed }: ApproveDialogProps) {
  const [forcedOf, setForcedOf] = useState<string | null>();
  const holder = job.holder?.run_id ?? null;
  const approve = useApprove(job.job, request.id);
  const { sent, send } = useSending<Changed>();
  const name = requestName(request.change);
  const title = `Approve: ${inSentence(name)}`;
  const isBusy = sent.phase === "refused" && troubleOf(sent.error).offer === "force";
  const isHeld = isBusy || job.state === "RUNNING";
  // Whoever agreed to take the job away from one run did not agree to take it from the next.
  const isForced = isHeld && forcedOf === holder;
  const isReady = !isHeld || isForced;
  const summary = summaryOfRequest(request.preview);
  return (
    <OneStepDialog
      job={job}
      title={title}
      name={name}
      colorPalette="red"
      sent={sent}
      isReady={isReady}
      version={request.version}
      onSend={() => send(() => approve.mutateAsync(isForced))}
      opener={opener}
      onClosed={onClosed}
    >
      <Text wordBreak="break-word">
        Requested by {request.who}: {request.why}
      </Text>
      {summary === undefined ? (
        <Text wordBreak="break-word">{withoutPreview(request.change, job.job)}</Text>
      ) : (
        <ChangeSummaryView summary={summary} fix={fixOfRequest(request.change)} />
      )}
      {isHeld && (
        <HolderChoice
          holder={holder}
          force={isForced}
          onForce={(isMeant) => setForcedOf(isMeant ? holder : undefined)}
        />
      )}
    </OneStepDialog>
  );
}
