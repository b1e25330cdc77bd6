import { Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Job, Requested, RequestRow } from "../api/model";
import { useReject } from "../api/queries";
import { ReasonField } from "./Confirm";
import { lackOfReason } from "./changeSpec";
import { OneStepDialog } from "./OneStepDialog";
import { useSending } from "./sending";
import { inSentence, requestName } from "./words";

interface RejectDialogProps {
  job: Job;
  request: RequestRow;
  /** What it is called: "Reject", or of one's own "Withdraw". */
  name: string;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Turn a request down, with a reason. */
export function RejectDialog({ job, request, name, opener, onClosed }: RejectDialogProps) {
  const [reason, setReason] = useState("");
  const reject = useReject(job.job, request.id);
  const { sent, send } = useSending<Requested>();
  const isReady = lackOfReason(reason) === undefined;
  const title = `${name}: ${inSentence(requestName(request.change))}`;
  return (
    <OneStepDialog
      job={job}
      title={title}
      name={name}
      colorPalette="red"
      sent={sent}
      isReady={isReady}
      version={request.version}
      onSend={() => send(() => reject.mutateAsync(reason.trim()))}
      opener={opener}
      onClosed={onClosed}
    >
      <Text wordBreak="break-word">
        Requested by {request.who}: {request.why}
      </Text>
      <ReasonField isFirst reason={reason} onReason={setReason} />
    </OneStepDialog>
  );
}
