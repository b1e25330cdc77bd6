import { Button, Stack, Switch, Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import { useMe } from "../api/queries";
import { CleanChoice } from "../change/CleanChoice";
import { ReasonField, TypedField } from "../change/Confirm";
import { lackOfClean } from "../change/changeSpec";
import { Frame } from "../change/Frame";
import { PointField } from "../change/PointField";
import { PreviewStep } from "../change/PreviewStep";
import { SendButton } from "../change/SendButton";
import { Step } from "../change/Step";
import { Problem } from "../parts/Problem";
import { count, inFull } from "../words/number";
import { BulkPreview } from "./BulkPreview";
import { BulkResult } from "./BulkResult";
import { type BulkDraft, useBulkForm } from "./bulkForm";
import { type BulkSpec, bulkName, isActive } from "./plan";
import type { PickedJob } from "./selection";

interface BulkDialogProps {
  kind: BulkSpec["kind"];
  picked: readonly PickedJob[];
  opener: RefObject<HTMLElement | null>;
  /** Told which jobs were changed or requested. */
  onDone: (jobs: string[]) => void;
  onClosed: () => void;
}

const BEGIN: Omit<BulkDraft, "kind"> = { to: "", clean: false, force: false, reason: "", typed: "" };

/** Take many jobs back: one preview, one reason, then a change of each by itself, and what became of each. */
export function BulkDialog({ kind, picked, opener, onDone, onClosed }: BulkDialogProps) {
  const [draft, setDraft] = useState<BulkDraft>({ kind, ...BEGIN });
  const mayLook = useMe().data?.may_look ?? false;
  const form = useBulkForm(picked, { ...draft, clean: draft.clean && mayLook }, onDone);
  const { steps, sent, isSending } = form;
  const choose = (next: Partial<BulkDraft>) => setDraft((before) => ({ ...before, ...next }));
  const frame = {
    title: `${kind === "reset" ? "Reset" : "Rewind"} ${count(picked.length, "job")}`,
    isSending,
    leaving: "Closing this dialog won't stop it, but leaving Airflow will. Each job's history has its result.",
    opener,
    onClosed,
  };
  if (sent.phase === "done") {
    return (
      <Frame {...frame}>
        <BulkResult outcomes={sent.answer} />
      </Frame>
    );
  }
  return (
    <Frame
      {...frame}
      onSubmit={form.submit}
      actions={(id) => (
        <>
          {isSending && <Sending changed={form.changed} of={steps?.filter(isActive).length ?? 0} onStop={form.stop} />}
          <SendButton
            form={id}
            name={steps && bulkName(kind, steps)}
            seen={steps && { needsApproval: steps.every(({ fate }) => fate !== "change") && steps.some(isActive) }}
            missing={form.missing}
            refusal={null}
            isSending={isSending}
          />
        </>
      )}
    >
      <Step title="1. Choose the change">
        <Choice draft={draft} mayLook={mayLook} onDraft={choose} />
      </Step>
      <PreviewStep
        preview={form.preview}
        lacks={form.lacks}
        progress={`Previewing ${count(picked.length, "job")}: ${inFull(form.looked)} done`}
        onLookAgain={() => void form.preview.refetch()}
        needsApproval={false}
        madeFor={() => "Based on the present version of each job."}
      >
        {(seen) => <BulkPreview steps={seen} mayLook={mayLook} />}
      </PreviewStep>
      <Step title="3. Reason and confirmation">
        <Confirmation draft={draft} wanted={form.confirmation} onDraft={choose} />
      </Step>
      {sent.phase === "refused" && <Problem error={sent.error} />}
    </Frame>
  );
}

type OnDraft = (draft: Partial<BulkDraft>) => void;

interface ChoiceProps {
  draft: BulkDraft;
  mayLook: boolean;
  onDraft: OnDraft;
}

function Choice({ draft, mayLook, onDraft }: ChoiceProps) {
  const whole = { kind: draft.kind, contexts: null, clean: false, toRun: null, ctx: "", isNow: null, typed: "" };
  return (
    <Stack gap={4}>
      {draft.kind === "reset" ? (
        <Text>Each job goes back to before its first run: its next run reads everything.</Text>
      ) : (
        <PointField typed={draft.to} onTyped={(to) => onDraft({ to })}>
          A time with a time zone, such as 2026-11-19T08:00:00Z: each job keeps its runs committed by then. Or a run id,
          a run number, or watermark:VALUE. Each job looks it up in its own history.
        </PointField>
      )}
      <CleanChoice
        isClean={draft.clean}
        obstacle={lackOfClean(whole, { may_look: mayLook })}
        onClean={(clean) => onDraft({ clean })}
      />
      <Switch.Root checked={draft.force} onCheckedChange={({ checked }) => onDraft({ force: checked })}>
        <Switch.HiddenInput />
        <Switch.Control />
        <Switch.Label>Stop runs that are using these jobs from committing</Switch.Label>
      </Switch.Root>
    </Stack>
  );
}

interface ConfirmationProps {
  draft: BulkDraft;
  /** What is to be typed; undefined while no job would be changed. */
  wanted: string | undefined;
  onDraft: OnDraft;
}

function Confirmation({ draft, wanted, onDraft }: ConfirmationProps) {
  return (
    <>
      <ReasonField
        reason={draft.reason}
        onReason={(reason) => onDraft({ reason })}
        isFirst={draft.kind === "reset"} // a rewind begins with its point
      />
      {wanted !== undefined && (
        <TypedField
          label="Type this to confirm: "
          wanted={wanted}
          wrong="That doesn't match."
          typed={draft.typed}
          onTyped={(typed) => onDraft({ typed })}
        />
      )}
    </>
  );
}

/** How far it is, and a way to leave the other jobs as they are. */
function Sending({ changed, of, onStop }: { changed: number; of: number; onStop: () => void }) {
  const [isStopped, setIsStopped] = useState(false);
  const stop = () => {
    setIsStopped(true);
    onStop();
  };
  return (
    <>
      <Text role="status" w="100%" textAlign="end" color="fg.muted" fontSize="sm" order={-1}>
        {inFull(changed)} of {count(of, "job")} done{isStopped ? "; stopping after the present one" : ""}
      </Text>
      <Button variant="outline" disabled={isStopped} onClick={stop}>
        Stop
      </Button>
    </>
  );
}
