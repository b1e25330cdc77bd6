import { Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Changed, Job, Requested } from "../api/model";
import { useAsk, useProtect } from "../api/queries";
import { NameField, ReasonField } from "./Confirm";
import { isNameTyped, lackOfReason, requestBody } from "./changeSpec";
import { OneStepDialog } from "./OneStepDialog";
import { useSending } from "./sending";

interface ProtectDialogProps {
  job: Job;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Protect a job, or ask for the end of its protection. */
export function ProtectDialog({ job, opener, onClosed }: ProtectDialogProps) {
  // What is done stays what it was: the job shows as protected as soon as it is.
  const [isEnd] = useState(job.protected === true);
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const { sent, send } = useProtecting(job, isEnd, reason);
  const isReady = lackOfReason(reason) === undefined && (!isEnd || isNameTyped(job.job, typed));
  const title = `${isEnd ? "Request unprotection of" : "Protect"} ${job.job}`;
  return (
    <OneStepDialog
      job={job}
      title={title}
      name={isEnd ? "Request unprotection" : "Protect"}
      colorPalette="blue"
      sent={sent}
      isReady={isReady}
      version={job.version ?? 0}
      onSend={send}
      opener={opener}
      onClosed={onClosed}
    >
      <Text>{isEnd ? END : BEGIN}</Text>
      <ReasonField isFirst reason={reason} onReason={setReason} />
      {isEnd && <NameField job={job.job} typed={typed} onTyped={setTyped} />}
    </OneStepDialog>
  );
}

const BEGIN =
  "Resets, rewinds, sets and undos of this job will require a second person's approval. Runs are not affected.";
const END = "The job stays protected until someone else approves this. After that, it can be changed without approval.";

function useProtecting(job: Job, isEnd: boolean, reason: string) {
  const protect = useProtect(job.job);
  const ask = useAsk(job.job);
  const { sent, send } = useSending<Changed | Requested>();
  const make = () =>
    isEnd
      ? ask.mutateAsync(requestBody({ kind: "unprotect" }, job.job, reason, job.version ?? 0))
      : protect.mutateAsync(reason.trim());
  return { sent, send: () => send(make) };
}
