import type { RefObject } from "react";
import type { Job, RunRow } from "../api/model";
import { AnswerView } from "./AnswerView";
import { NameField, ReasonField } from "./Confirm";
import { useChangeForm } from "./changeForm";
import { Frame } from "./Frame";
import { HolderChoice } from "./HolderChoice";
import { PreviewStep } from "./PreviewStep";
import { SendButton } from "./SendButton";
import { Step } from "./Step";
import { TroubleView } from "./TroubleView";
import { What } from "./What";
import type { Kind } from "./wish";
import { actionName } from "./words";

interface ChangeDialogProps {
  job: Job;
  kind: Kind;
  picked: RunRow | undefined;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

const TITLES: Record<Kind, string> = {
  reset: "Reset",
  rewind: "Rewind",
  set: "Set",
  undo: "Undo",
  delete: "Delete the bookmark of",
};

/** Change where a job stands: what, what that would do, why and sure, done. */
export function ChangeDialog({ job, kind, picked, opener, onClosed }: ChangeDialogProps) {
  const form = useChangeForm(job, kind, picked);
  const { draft, sure, sent, seen } = form;
  const frame = { title: `${TITLES[kind]} ${job.job}`, isSending: form.isSending, opener, onClosed };
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
      onSubmit={form.submit}
      actions={(id) => (
        <SendButton
          form={id}
          name={form.wish && actionName(form.wish)}
          seen={seen}
          missing={form.missing}
          refusal={form.preview.isFetching ? null : form.preview.error}
          isSending={form.isSending}
        />
      )}
    >
      <Step title="1. What">
        <What job={job} picked={picked} draft={draft} onDraft={form.choose} />
      </Step>
      <PreviewStep
        preview={form.preview}
        wish={form.wish}
        lacks={form.missing[0]}
        versionNow={job.version ?? undefined}
        onLookAgain={form.lookAgain}
        onClean={() => form.choose({ ...draft, clean: true })}
        mayLook={job.may_look}
      />
      {form.isHeld && (
        <HolderChoice holder={seen?.holder ?? null} force={sure.force} onForce={(force) => form.say({ force })} />
      )}
      <Step title="3. Why, and sure">
        <ReasonField isFirst={kind === "undo"} reason={sure.reason} onReason={(reason) => form.say({ reason })} />
        <NameField job={job.job} typed={sure.typed} onTyped={(typed) => form.say({ typed })} />
      </Step>
      {sent.phase === "refused" && (
        <TroubleView job={job.job} error={sent.error} version={form.sentVersion} onPreview={form.lookAgain} />
      )}
    </Frame>
  );
}
