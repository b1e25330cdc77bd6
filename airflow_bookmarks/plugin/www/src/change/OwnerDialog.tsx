import { type RefObject, useState } from "react";
import type { Job, OwnerSpec, OwnershipPreview } from "../api/model";
import { useAsk, useOwnership, useOwnershipPreview } from "../api/queries";
import { useChangeForm } from "./changeForm";
import { OwnerChoice } from "./OwnerChoice";
import { OwnerPreview } from "./OwnerPreview";
import { type OwnerDraft, type OwnerKind, ownerActionName, ownerBody, ownerRequestBody, ownerSpecOf } from "./owner";
import { PreviewedDialog } from "./PreviewedDialog";

interface OwnerDialogProps {
  job: Job;
  kind: OwnerKind;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

const TITLES: Record<OwnerKind, string> = { share: "Share", unshare: "Stop sharing", "hand-over": "Hand over" };

/** Share a job with another DAG, take that back, or hand it over. */
export function OwnerDialog({ job, kind, opener, onClosed }: OwnerDialogProps) {
  // The job may be out of sight once it is handed over: what was begun stays what it was.
  const [begun] = useState(job);
  const [draft, setDraft] = useState<OwnerDraft>({ kind, dag: "", renamed: null });
  const form = useForm(begun.job, draft);
  const choose = (next: Partial<OwnerDraft>) => {
    form.reopen();
    setDraft((before) => ({ ...before, ...next }));
  };
  return (
    <PreviewedDialog
      form={form}
      job={begun}
      title={`${TITLES[kind]} ${begun.job}`}
      opener={opener}
      onClosed={onClosed}
      nameOf={ownerActionName}
      madeFor={({ seen }) =>
        `Based on version ${seen.version} of the job. No run is undone, and nothing is read again.`
      }
      choice={<OwnerChoice job={begun} draft={draft} onDraft={choose} />}
      isSharded={begun.shards != null}
    >
      {(seen) => <OwnerPreview seen={seen} />}
    </PreviewedDialog>
  );
}

function useForm(job: string, draft: OwnerDraft) {
  const settled = ownerSpecOf(draft);
  const change = useOwnership(job);
  const ask = useAsk(job);
  return useChangeForm<OwnerSpec, OwnershipPreview>({
    job,
    settled,
    preview: useOwnershipPreview(job, "value" in settled ? settled.value : undefined),
    // No run loses the job: the one that holds it goes on.
    look: (seen) => ({ version: seen.seen.version, needsApproval: seen.needs_approval, isHeld: false, lacks: [] }),
    make: (spec, { reason }, seen) =>
      seen.needs_approval && spec.kind !== "unshare"
        ? ask.mutateAsync(ownerRequestBody(spec, job, reason, seen))
        : change.mutateAsync(ownerBody(spec, job, reason, seen)),
  });
}
