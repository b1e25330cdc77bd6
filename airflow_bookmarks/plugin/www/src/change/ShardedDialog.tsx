import { Stack, Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Job, ShardedPreview, ShardedSpec } from "../api/model";
import { useShardedChange, useShardedPreview } from "../api/queries";
import { CleanChoice } from "./CleanChoice";
import { ContextChoice } from "./ContextChoice";
import { useChangeForm } from "./changeForm";
import { lackOfClean } from "./changeSpec";
import { PointField } from "./PointField";
import { PreviewedDialog } from "./PreviewedDialog";
import { ShardedPreviewView } from "./ShardedPreviewView";
import { type ShardedDraft, type ShardedKind, shardedActionName, shardedBody, shardedSpecOf } from "./sharded";

interface ShardedDialogProps {
  job: Job;
  kind: ShardedKind;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Take all virtual shards of a job back. */
export function ShardedDialog({ job, kind, opener, onClosed }: ShardedDialogProps) {
  const [draft, setDraft] = useState<ShardedDraft>({ kind, to: "", contexts: null, clean: false });
  const form = useForm(job, draft);
  const choose = (next: Partial<ShardedDraft>) => {
    form.reopen();
    setDraft((before) => ({ ...before, ...next }));
  };
  return (
    <PreviewedDialog
      form={form}
      job={job}
      title={`${kind === "reset" ? "Reset" : "Rewind"} ${job.job}`}
      opener={opener}
      onClosed={onClosed}
      nameOf={shardedActionName}
      madeFor={({ version }) => `Based on version ${version} of the job, the sum of its shards' versions.`}
      holderOf={({ holders }) => heldBy(Object.values(holders))}
      choice={<Choice job={job} draft={draft} onDraft={choose} />}
      isSharded
    >
      {(seen) => <ShardedPreviewView seen={seen} />}
    </PreviewedDialog>
  );
}

function useForm(job: Job, draft: ShardedDraft) {
  const settled = shardedSpecOf({ ...draft, clean: draft.clean && job.may_look });
  const change = useShardedChange(job.job);
  return useChangeForm<ShardedSpec, ShardedPreview>({
    job: job.job,
    settled,
    preview: useShardedPreview(job.job, "value" in settled ? settled.value : undefined),
    look: (seen, isBusy) => ({
      version: seen.version,
      needsApproval: false,
      isHeld: isBusy || Object.keys(seen.holders).length > 0,
      lacks: seen.shards === 0 ? ["a shard to change"] : [],
    }),
    make: (spec, sure, seen) => change.mutateAsync(shardedBody(spec, job.job, sure, seen.version)),
  });
}

interface ChoiceProps {
  job: Job;
  draft: ShardedDraft;
  onDraft: (draft: Partial<ShardedDraft>) => void;
}

function Choice({ job, draft, onDraft }: ChoiceProps) {
  const known = Object.keys(job.watermark).sort();
  return (
    <Stack gap={4}>
      {draft.kind === "reset" ? (
        <Text>Each virtual shard goes back to before its first run: the next runs read everything.</Text>
      ) : (
        <PointField typed={draft.to} onTyped={(to) => onDraft({ to })}>
          A run id such as dag/dag run/task, which covers all mapped tasks; or a time with a time zone, such as
          2026-11-19T08:00:00Z, which keeps each shard's runs committed by then. Run numbers differ by shard.
        </PointField>
      )}
      {known.length > 0 && (
        <ContextChoice known={known} chosen={draft.contexts} onChosen={(contexts) => onDraft({ contexts })} />
      )}
      <CleanChoice
        isClean={draft.clean}
        obstacle={lackOfClean(
          { kind: "reset", contexts: draft.contexts, clean: false, toRun: null, ctx: "", isNow: null, typed: "" },
          job,
        )}
        onClean={(clean) => onDraft({ clean })}
      />
    </Stack>
  );
}

function heldBy(holders: readonly string[]): string | null {
  const [first, ...others] = holders;
  return first === undefined || others.length > 0 ? null : first;
}
