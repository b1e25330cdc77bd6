import { Button, Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Job, Requested, RequestRow } from "../api/model";
import { useReject } from "../api/queries";
import { AnswerView } from "./AnswerView";
import { ReasonField } from "./Confirm";
import { lackOfReason } from "./changeSpec";
import { Frame } from "./Frame";
import { useSending } from "./sending";
import { TroubleView } from "./TroubleView";
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
  const { sent, isSending, send } = useSending<Requested>();
  const isReady = lackOfReason(reason) === undefined;
  const title = `${name}: ${inSentence(requestName(request.change))}`;
  if (sent.phase === "done") {
    return (
      <Frame title={title} isSending={false} opener={opener} onClosed={onClosed}>
        <AnswerView answer={sent.answer} job={job} />
      </Frame>
    );
  }
  return (
    <Frame
      title={title}
      isSending={isSending}
      opener={opener}
      onClosed={onClosed}
      onSubmit={() => {
        if (isReady) send(() => reject.mutateAsync(reason.trim()));
      }}
      actions={(form) => (
        <Button
          type="submit"
          form={form}
          colorPalette="red"
          disabled={!isReady}
          loading={isSending}
          loadingText="Sending"
        >
          {name}
        </Button>
      )}
    >
      <Text wordBreak="break-word">
        Requested by {request.who}: {request.why}
      </Text>
      <ReasonField isFirst reason={reason} onReason={setReason} />
      {sent.phase === "refused" && <TroubleView job={job.job} error={sent.error} version={request.version} />}
    </Frame>
  );
}
