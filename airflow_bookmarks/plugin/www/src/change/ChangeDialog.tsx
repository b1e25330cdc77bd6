import { Alert } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { ChangeSpec, Job, Preview, RunRow } from "../api/model";
import { useAsk, useChange, usePreview } from "../api/queries";
import { ChangeSummaryView } from "./ChangeSummaryView";
import { useChangeForm } from "./changeForm";
import { changeBody, changeSpecOf, type Draft, draftOf, type Kind, requestBody } from "./changeSpec";
import { summaryOf } from "./changeSummary";
import { PreviewedDialog } from "./PreviewedDialog";
import { What } from "./What";
import { actionName, fixOf } from "./words";

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

/** Change where a job stands. */
export function ChangeDialog({ job, kind, picked, opener, onClosed }: ChangeDialogProps) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(kind, job, picked));
  const form = useForm(job, draft);
  const choose = (next: Draft) => {
    form.reopen();
    setDraft(next);
  };
  return (
    <PreviewedDialog
      form={form}
      job={job}
      title={`${TITLES[kind]} ${job.job}`}
      opener={opener}
      onClosed={onClosed}
      nameOf={actionName}
      madeFor={({ version }) => `Based on version ${version} of the job.`}
      holderOf={({ holder }) => holder}
      choice={<What job={job} picked={picked} draft={draft} onDraft={choose} />}
      isReasonFirst={kind === "undo"}
    >
      {(seen) => (
        <>
          {job.version != null && job.version > seen.version && (
            <Alert.Root status="info">
              <Alert.Indicator />
              <Alert.Description>
                The job is now at version {job.version}, so this preview is out of date. Refresh it before you continue.
              </Alert.Description>
            </Alert.Root>
          )}
          <ChangeSummaryView
            summary={summaryOf(seen)}
            fix={form.spec && fixOf(form.spec, job.may_look)}
            onClean={() => choose({ ...draft, clean: true })}
          />
        </>
      )}
    </PreviewedDialog>
  );
}

function useForm(job: Job, draft: Draft) {
  const settled = changeSpecOf(draft, job);
  const change = useChange(job.job);
  const ask = useAsk(job.job);
  return useChangeForm<ChangeSpec, Preview>({
    job: job.job,
    settled,
    preview: usePreview(job.job, "value" in settled ? settled.value : undefined),
    look: (seen, isBusy) => ({
      version: seen.version,
      needsApproval: seen.needs_approval,
      isHeld: isInTheWay(seen, job, isBusy),
      lacks: [],
    }),
    make: (spec, sure, seen) =>
      seen.needs_approval
        ? ask.mutateAsync(requestBody(spec, job.job, sure.reason, seen.version))
        : change.mutateAsync(changeBody(spec, job.job, sure, seen.version)),
  });
}

/**
 * Whether a run has to lose the job first. One whose lease ran out is fenced without being told to, and of a request
 * the approver says.
 */
function isInTheWay(seen: Preview, job: Job, isBusy: boolean): boolean {
  return !seen.needs_approval && (isBusy || (seen.holder !== null && job.state !== "EXPIRED"));
}
