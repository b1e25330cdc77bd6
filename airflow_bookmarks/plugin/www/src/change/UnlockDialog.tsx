import { Alert, Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Changed, Job } from "../api/model";
import { useUnlock } from "../api/queries";
import { Ago } from "../parts/Ago";
import { NameField, ReasonField } from "./Confirm";
import { isNameTyped, lackOfReason } from "./changeSpec";
import { OneStepDialog } from "./OneStepDialog";
import { useSending } from "./sending";

type Holder = NonNullable<Job["holder"]>;

interface UnlockDialogProps {
  job: Job;
  holder: Holder;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Take a job from a run whose driver is known to be dead. */
export function UnlockDialog({ job, holder, opener, onClosed }: UnlockDialogProps) {
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const unlock = useUnlock(job.job);
  const { sent, send } = useSending<Changed>();
  const isReady = lackOfReason(reason) === undefined && isNameTyped(job.job, typed);
  const title = `Unlock ${job.job}`;
  return (
    <OneStepDialog
      job={job}
      title={title}
      name="Unlock"
      colorPalette="red"
      sent={sent}
      isReady={isReady}
      version={job.version ?? 0}
      onSend={() => send(() => unlock.mutateAsync({ reason: reason.trim(), held_by: holder.run_id, confirm: job.job }))}
      opener={opener}
      onClosed={onClosed}
    >
      <Text wordBreak="break-word">
        Run {holder.run_id} (attempt {holder.attempt}) has held this job since <Ago at={holder.since} />; its lease ends{" "}
        <Ago at={holder.until} mayLieAhead />. Unlock the job only if you know that its driver is dead.
      </Text>
      <Alert.Root status="warning">
        <Alert.Indicator />
        <Alert.Content>
          <Alert.Title>That run won't be able to commit</Alert.Title>
          <Alert.Description>
            If its driver is alive after all, its run fails, and the input is read again. The next run finishes or
            discards what it left. If you wait, the next run takes over automatically once the lease expires.
          </Alert.Description>
        </Alert.Content>
      </Alert.Root>
      <ReasonField isFirst reason={reason} onReason={setReason} />
      <NameField job={job.job} typed={typed} onTyped={setTyped} />
    </OneStepDialog>
  );
}
