import { Alert, Field, Input, NativeSelect, RadioGroup, Stack } from "@chakra-ui/react";
import type { Job } from "../api/model";
import { timesInZone, withoutZone } from "../words/time";
import { useZone } from "../words/zone";
import { Radio } from "./ContextChoice";
import type { Draft } from "./changeSpec";
import { contextName, type Setting, settingOf, settleRun, settleTime } from "./setting";

interface PointChoiceProps {
  job: Job;
  draft: Draft;
  onDraft: (draft: Draft) => void;
}

/** Choose the context that is set, and to where: in the words of its kind. */
export function PointChoice({ job, draft, onDraft }: PointChoiceProps) {
  const { contexts, may_look } = job;
  const row = contexts.find(({ ctx }) => ctx === draft.ctx);
  if (row === undefined) {
    return (
      <Alert.Root status="info">
        <Alert.Indicator />
        <Alert.Description>
          This job has no contexts yet. A context can be set once a run has read it.
        </Alert.Description>
      </Alert.Root>
    );
  }
  const setting = settingOf(row, may_look);
  return (
    <Stack gap={4}>
      <Field.Root>
        <Field.Label>Context</Field.Label>
        <NativeSelect.Root>
          <NativeSelect.Field
            data-first
            value={draft.ctx}
            onChange={(event) => onDraft({ ...draft, ctx: event.currentTarget.value, isNow: null, typed: "" })}
          >
            {contexts.map(({ ctx, kind }) => (
              <option key={ctx} value={ctx}>
                {contextName(ctx)} ({kind})
              </option>
            ))}
          </NativeSelect.Field>
          <NativeSelect.Indicator />
        </NativeSelect.Root>
        <Field.HelperText wordBreak="break-word">Current position: {timesInZone(row.position)}.</Field.HelperText>
      </Field.Root>
      {setting.by === "nothing" ? (
        <Alert.Root status="warning">
          <Alert.Indicator />
          <Alert.Description>{setting.why}</Alert.Description>
        </Alert.Root>
      ) : setting.by === "text" ? (
        <TextField kind={row.kind} draft={draft} onDraft={onDraft} />
      ) : (
        <Point setting={setting} draft={draft} onDraft={onDraft} />
      )}
    </Stack>
  );
}

type Settable = Exclude<Setting, { by: "nothing" } | { by: "text" }>;

function Point({ setting, draft, onDraft }: { setting: Settable } & Omit<PointChoiceProps, "job">) {
  const isTime = setting.by === "time";
  return (
    <Stack gap={3}>
      <RadioGroup.Root
        value={draft.isNow === null ? null : draft.isNow ? "now" : "typed"}
        onValueChange={({ value }) => onDraft({ ...draft, isNow: value === "now" })}
      >
        <RadioGroup.Label srOnly>Set to</RadioGroup.Label>
        <Stack gap={2}>
          <Radio value="now">
            {isTime ? "Now: skip all unread files" : `Now: skip all unread runs of ${setting.upstream}`}
          </Radio>
          <Radio value="typed">{isTime ? "A time" : `A run of ${setting.upstream}`}</Radio>
        </Stack>
      </RadioGroup.Root>
      {draft.isNow === false &&
        (isTime ? <TimeField draft={draft} onDraft={onDraft} /> : <RunField {...{ draft, onDraft }} />)}
    </Stack>
  );
}

type TypedProps = Omit<PointChoiceProps, "job">;

function TimeField({ draft, onDraft }: TypedProps) {
  const zone = useZone();
  const settled = settleTime(draft.typed, zone);
  return (
    <Field.Root ps={6} invalid={draft.typed !== "" && "lacks" in settled}>
      <Field.Label>Time, in {zone}</Field.Label>
      <Input
        type="datetime-local"
        step={1}
        maxW="20rem"
        value={draft.typed}
        onChange={(event) => onDraft({ ...draft, typed: event.currentTarget.value })}
      />
      <Field.HelperText>
        Older files count as read; all others are read, including those read before.
        {"value" in settled && ` In UTC: ${withoutZone(new Date(settled.value))}.`}
      </Field.HelperText>
      {"lacks" in settled && <Field.ErrorText>Enter {settled.lacks}.</Field.ErrorText>}
    </Field.Root>
  );
}

function TextField({ kind, draft, onDraft }: TypedProps & { kind: string }) {
  return (
    <Field.Root>
      <Field.Label>Position</Field.Label>
      <Input
        maxW="20rem"
        value={draft.typed}
        onChange={(event) => onDraft({ ...draft, typed: event.currentTarget.value })}
      />
      <Field.HelperText>
        {kind === "jdbc"
          ? "A value of the first key: rows up to and including it count as read."
          : `The format depends on the source (${kind}); check the preview.`}
      </Field.HelperText>
    </Field.Root>
  );
}

function RunField({ draft, onDraft }: TypedProps) {
  const settled = settleRun(draft.typed);
  return (
    <Field.Root ps={6} invalid={draft.typed !== "" && "lacks" in settled}>
      <Field.Label>Run number</Field.Label>
      <Input
        inputMode="numeric"
        maxW="12rem"
        value={draft.typed}
        onChange={(event) => onDraft({ ...draft, typed: event.currentTarget.value })}
      />
      <Field.HelperText>
        Everything up to and including this published run counts as read. Enter 0 to read from the beginning.
      </Field.HelperText>
      {"lacks" in settled && <Field.ErrorText>Enter {settled.lacks}.</Field.ErrorText>}
    </Field.Root>
  );
}
