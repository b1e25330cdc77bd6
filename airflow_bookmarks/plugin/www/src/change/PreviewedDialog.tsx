import type { ReactNode, RefObject } from "react";
import type { Job } from "../api/model";
import { AnswerView } from "./AnswerView";
import { NameField, ReasonField } from "./Confirm";
import type { ChangeForm } from "./changeForm";
import { Frame } from "./Frame";
import { HolderChoice } from "./HolderChoice";
import { PreviewStep } from "./PreviewStep";
import { SendButton } from "./SendButton";
import { Step } from "./Step";
import { TroubleView } from "./TroubleView";

interface PreviewedDialogProps<ChangeSpec, Seen> {
  form: ChangeForm<ChangeSpec, Seen>;
  job: Job;
  title: string;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
  /** Name a change, as the button that makes it does. */
  nameOf: (spec: ChangeSpec) => string;
  /** Say below the preview what it was made for. */
  madeFor: (seen: Seen) => string;
  /** The run that holds the job; null: some run, or several. */
  holderOf?: (seen: Seen) => string | null;
  /** The first step: what to change. */
  choice: ReactNode;
  /** The preview. */
  children: (seen: Seen) => ReactNode;
  /** What is left to do once it is made; by itself where the answer alone tells. */
  then?: (seen: Seen) => ReactNode;
  /** Whether the first step has no field that could take the focus. */
  isReasonFirst?: boolean;
  isSharded?: boolean;
}

/** Make a change in steps: what to change, what that would do, the reason and the name of the job, the result. */
export function PreviewedDialog<ChangeSpec, Seen>({ form, ...props }: PreviewedDialogProps<ChangeSpec, Seen>) {
  const { job, spec, preview, seen, looked, sure, sent, isSending, lookAgain, confirm } = form;
  const frame = { title: props.title, isSending, opener: props.opener, onClosed: props.onClosed };
  if (sent.phase === "done") {
    return (
      <Frame {...frame}>
        <AnswerView answer={sent.answer} job={props.job}>
          {seen !== undefined && props.then?.(seen)}
        </AnswerView>
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
          name={spec && props.nameOf(spec)}
          seen={looked}
          missing={form.missing}
          refusal={preview.isFetching ? null : preview.error}
          isSending={isSending}
        />
      )}
    >
      <Step title="1. Choose the change">{props.choice}</Step>
      <PreviewStep
        preview={preview}
        lacks={spec === undefined ? form.missing[0] : undefined}
        onLookAgain={lookAgain}
        needsApproval={looked?.needsApproval ?? false}
        madeFor={props.madeFor}
      >
        {props.children}
      </PreviewStep>
      {looked?.isHeld && (
        <HolderChoice
          holder={(seen && props.holderOf?.(seen)) ?? null}
          force={sure.force}
          onForce={(force) => confirm({ force })}
        />
      )}
      <Step title="3. Reason and confirmation">
        <ReasonField
          isFirst={props.isReasonFirst ?? false}
          reason={sure.reason}
          onReason={(reason) => confirm({ reason })}
        />
        <NameField job={job} typed={sure.typed} onTyped={(typed) => confirm({ typed })} />
      </Step>
      {sent.phase === "refused" && (
        <TroubleView
          job={job}
          error={sent.error}
          version={form.sentVersion}
          onPreview={lookAgain}
          isSharded={props.isSharded ?? false}
        />
      )}
    </Frame>
  );
}
