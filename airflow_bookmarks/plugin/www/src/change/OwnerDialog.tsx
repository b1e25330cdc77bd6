import { type RefObject, useState } from "react";
import type { Changed, Job, OwnershipPreview, OwnerWish, Requested } from "../api/model";
import { useAsk, useOwnership, useOwnershipPreview } from "../api/queries";
import { AnswerView } from "./AnswerView";
import { NameField, ReasonField } from "./Confirm";
import { Frame } from "./Frame";
import { OwnerChoice } from "./OwnerChoice";
import { OwnerPreview } from "./OwnerPreview";
import { type OwnerDraft, type OwnerKind, ownerActionName, ownerBody, ownerRequestBody, ownerWishOf } from "./owner";
import { SendButton } from "./SendButton";
import { Step } from "./Step";
import { useSending } from "./sending";
import { TroubleView } from "./TroubleView";
import { troubleOf } from "./trouble";
import { lacking } from "./wish";

interface OwnerDialogProps {
  job: Job;
  kind: OwnerKind;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

const TITLES: Record<OwnerKind, string> = { share: "Share", unshare: "Stop sharing", "hand-over": "Hand over" };

/** Share a job with another DAG, take that back, or hand it over: what, what that would do, why and sure, done. */
export function OwnerDialog({ job, kind, opener, onClosed }: OwnerDialogProps) {
  // The job may be out of sight once it is handed over: what was begun stays what it was.
  const [begun] = useState(job);
  const [draft, setDraft] = useState<OwnerDraft>({ kind, dag: "", renamed: null });
  const [sure, setSure] = useState({ reason: "", typed: "" });
  const { sent, isSending, send, reopen } = useOwnerSending(begun.job);
  const settled = ownerWishOf(draft);
  const wish = "value" in settled ? settled.value : undefined;
  const preview = useOwnershipPreview(begun.job, wish);
  const seen = preview.isFetching || preview.isError ? undefined : preview.data;
  const isOld = sent.phase === "refused" && troubleOf(sent.error).offer === "preview";
  const missing =
    "lacks" in settled ? [settled.lacks] : lacking(begun.job, { ...sure, force: false }, { isHeld: false, isOld });
  const lookAgain = () => {
    reopen();
    void preview.refetch();
  };
  const frame = { title: `${TITLES[kind]} ${begun.job}`, isSending, opener, onClosed };
  if (sent.phase === "done") {
    return (
      <Frame {...frame}>
        <AnswerView answer={sent.answer} />
      </Frame>
    );
  }
  return (
    <Frame
      {...frame}
      onSubmit={() => {
        if (seen !== undefined && wish !== undefined && missing.length === 0) send(wish, sure.reason, seen);
      }}
      actions={(form) => (
        <SendButton
          form={form}
          name={wish && ownerActionName(wish)}
          seen={seen}
          missing={missing}
          refusal={preview.isFetching ? null : preview.error}
          isSending={isSending}
        />
      )}
    >
      <Step title="1. What">
        <OwnerChoice
          job={begun}
          draft={draft}
          onDraft={(next) => {
            reopen();
            setDraft((before) => ({ ...before, ...next }));
          }}
        />
      </Step>
      <OwnerPreview preview={preview} lacks={"lacks" in settled ? settled.lacks : undefined} onLookAgain={lookAgain} />
      <Step title="3. Why, and sure">
        <ReasonField reason={sure.reason} onReason={(reason) => setSure((before) => ({ ...before, reason }))} />
        <NameField
          job={begun.job}
          typed={sure.typed}
          onTyped={(typed) => setSure((before) => ({ ...before, typed }))}
        />
      </Step>
      {sent.phase === "refused" && (
        <TroubleView
          job={begun.job}
          error={sent.error}
          version={begun.version ?? 0}
          onPreview={lookAgain}
          isSharded={begun.shards != null}
        />
      )}
    </Frame>
  );
}

/** Make the change that was previewed; of a protected job, ask for it. */
function useOwnerSending(job: string) {
  const change = useOwnership(job);
  const ask = useAsk(job);
  const sending = useSending<Changed | Requested>();
  const send = (wish: OwnerWish, reason: string, seen: OwnershipPreview) =>
    sending.send(() =>
      seen.needs_approval && wish.kind !== "unshare"
        ? ask.mutateAsync(ownerRequestBody(wish, job, reason, seen))
        : change.mutateAsync(ownerBody(wish, job, reason, seen)),
    );
  return { ...sending, send };
}
