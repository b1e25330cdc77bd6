import { Alert } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Job, RunRow } from "../api/model";
import { ChangeSummaryView } from "./ChangeSummaryView";
import { changeSpecOf, type Draft, draftOf, type Kind } from "./changeSpec";
import { summaryOf } from "./changeSummary";
import { PreviewedDialog } from "./PreviewedDialog";
import { useSpecForm } from "./specForm";
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
  const form = useSpecForm(job, changeSpecOf(draft, job));
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
