import { Field, Input, Stack, Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { Changed, Job } from "../api/model";
import { useShardedChange, useShardedPreview } from "../api/queries";
import { useSettledText } from "../parts/useSettledText";
import { AnswerView } from "./AnswerView";
import { CleanChoice } from "./CleanChoice";
import { NameField, ReasonField } from "./Confirm";
import { ContextChoice } from "./ContextChoice";
import { Frame } from "./Frame";
import { HolderChoice } from "./HolderChoice";
import { SendButton } from "./SendButton";
import { ShardedPreviewStep } from "./ShardedPreviewStep";
import { Step } from "./Step";
import { useSending } from "./sending";
import { type ShardedDraft, type ShardedKind, shardedActionName, shardedBody, shardedWishOf } from "./sharded";
import { TroubleView } from "./TroubleView";
import { troubleOf } from "./trouble";
import { lacking, lackOfClean, type Sure } from "./wish";

interface ShardedDialogProps {
  job: Job;
  kind: ShardedKind;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

/** Take all virtual shards of a job back: what, what that would do, why and sure, done. */
export function ShardedDialog({ job, kind, opener, onClosed }: ShardedDialogProps) {
  const [draft, setDraft] = useState<ShardedDraft>({ kind, to: "", contexts: null, clean: false });
  const [sure, setSure] = useState<Sure>({ reason: "", typed: "", force: false });
  const change = useShardedChange(job.job);
  const { sent, isSending, send, reopen } = useSending<Changed>();
  const settled = shardedWishOf({ ...draft, clean: draft.clean && job.may_look });
  const wish = "value" in settled ? settled.value : undefined;
  const preview = useShardedPreview(job.job, wish);
  const seen = preview.isFetching || preview.isError ? undefined : preview.data;
  const offer = sent.phase === "refused" ? troubleOf(sent.error).offer : undefined;
  const isHeld = seen !== undefined && (offer === "force" || Object.keys(seen.holders).length > 0);
  const isNothing = seen !== undefined && seen.shards === 0;
  const missing =
    "lacks" in settled
      ? [settled.lacks]
      : [
          ...(isNothing ? ["a shard that would change"] : []),
          ...lacking(job.job, sure, { isHeld, isOld: offer === "preview" }),
        ];
  const say = (said: Partial<Sure>) => setSure((before) => ({ ...before, ...said }));
  const lookAnew = () => {
    reopen();
    say({ force: false });
  };
  const choose = (next: Partial<ShardedDraft>) => {
    lookAnew();
    setDraft((before) => ({ ...before, ...next }));
  };
  const lookAgain = () => {
    lookAnew();
    void preview.refetch();
  };
  const frame = { title: `${kind === "reset" ? "Reset" : "Rewind"} ${job.job}`, isSending, opener, onClosed };
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
        if (seen === undefined || wish === undefined || missing.length > 0) return;
        const meant = shardedBody(wish, job.job, { ...sure, force: isHeld && sure.force }, seen.version);
        send(() => change.mutateAsync(meant));
      }}
      actions={(form) => (
        <SendButton
          form={form}
          name={wish && shardedActionName(wish)}
          seen={seen && { needs_approval: false }}
          missing={missing}
          refusal={preview.isFetching ? null : preview.error}
          isSending={isSending}
        />
      )}
    >
      <Step title="1. What">
        <Choice job={job} draft={draft} onDraft={choose} />
      </Step>
      <ShardedPreviewStep
        preview={preview}
        lacks={"lacks" in settled ? settled.lacks : undefined}
        onLookAgain={lookAgain}
      />
      {isHeld && (
        <HolderChoice
          holder={heldBy(Object.values(seen.holders))}
          force={sure.force}
          onForce={(force) => say({ force })}
        />
      )}
      <Step title="3. Why, and sure">
        <ReasonField reason={sure.reason} onReason={(reason) => say({ reason })} />
        <NameField job={job.job} typed={sure.typed} onTyped={(typed) => say({ typed })} />
      </Step>
      {sent.phase === "refused" && (
        <TroubleView job={job.job} error={sent.error} version={seen?.version ?? 0} onPreview={lookAgain} isSharded />
      )}
    </Frame>
  );
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
        <Text>Each virtual shard stands as before its first run: the next runs read everything.</Text>
      ) : (
        <PointField typed={draft.to} onTyped={(to) => onDraft({ to })} />
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

function PointField({ typed, onTyped }: { typed: string; onTyped: (text: string) => void }) {
  const [text, setText] = useSettledText(typed, onTyped);
  return (
    <Field.Root required>
      <Field.Label>
        Back to after <Field.RequiredIndicator />
      </Field.Label>
      <Input
        data-first
        autoCapitalize="off"
        autoComplete="off"
        autoCorrect="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Field.HelperText wordBreak="break-word">
        A run id, such as dag/dag run/task, which means all tasks that were mapped; or a time with its zone, such as
        2026-11-19T08:00:00Z: the last run of each shard that had committed by then. Run numbers differ by shard.
      </Field.HelperText>
    </Field.Root>
  );
}

function heldBy(holders: readonly string[]): string | null {
  const [first, ...others] = holders;
  return first === undefined || others.length > 0 ? null : first;
}
