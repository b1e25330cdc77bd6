import { Alert, Box, Button, Field, Flex, Input, Stack, Switch, Table, Tag, Text } from "@chakra-ui/react";
import { type RefObject, useState } from "react";
import type { BackfillPreview, BackfillSpec, BackfillStep, Job } from "../api/model";
import { useBackfill, useBackfillPreview } from "../api/queries";
import { ScrollTable } from "../parts/ScrollTable";
import { duration } from "../words/time";
import {
  type BackfillDraft,
  backfillBody,
  backfillFactsOf,
  backfillName,
  backfillSpecOf,
  becauseInWords,
  lacksOf,
  priceOf,
  whereInWords,
} from "./backfill";
import { CleanChoice } from "./CleanChoice";
import { useChangeForm } from "./changeForm";
import { lackOfClean } from "./changeSpec";
import { DagRuns } from "./DagRuns";
import { Facts } from "./Facts";
import { StateMarks } from "./Marks";
import { PointField } from "./PointField";
import { PreviewedDialog } from "./PreviewedDialog";
import { TwiceAlert } from "./ShardedPreviewView";
import { againInWords } from "./words";

interface BackfillDialogProps {
  job: Job;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
}

const BEGIN: BackfillDraft = { isFromStart: false, to: "", clean: false, leave: [], keep: [], force: false, price: "" };

type OnDraft = (draft: Partial<BackfillDraft>) => void;

/** Take a job back with everything downstream of it, by one plan. */
export function BackfillDialog({ job, opener, onClosed }: BackfillDialogProps) {
  const [draft, setDraft] = useState(BEGIN);
  const form = useForm(job, draft);
  const choose: OnDraft = (next) => {
    form.reopen();
    setDraft((before) => ({ ...before, ...next }));
  };
  return (
    <PreviewedDialog
      form={form}
      job={job}
      title={`Backfill ${job.job} and everything downstream`}
      opener={opener}
      onClosed={onClosed}
      nameOf={() => backfillName(form.seen)}
      madeFor={({ steps }) => `Based on the present version of each of ${steps.length} jobs.`}
      then={(seen) => <DagRuns of={seen.dag_runs} />}
      choice={<Choice job={job} draft={draft} onDraft={choose} />}
      isSharded
    >
      {(seen) => <Plan seen={seen} draft={draft} onDraft={choose} />}
    </PreviewedDialog>
  );
}

function useForm(job: Job, draft: BackfillDraft) {
  const settled = backfillSpecOf({ ...draft, clean: draft.clean && job.may_look });
  const make = useBackfill(job.job);
  return useChangeForm<BackfillSpec, BackfillPreview>({
    job: job.job,
    settled,
    preview: useBackfillPreview(job.job, "value" in settled ? settled.value : undefined),
    // Whether runs lose their jobs is part of the plan: see `force` there.
    look: (seen) => ({ version: 0, needsApproval: false, isHeld: false, lacks: lacksOf(seen) }),
    make: (spec, sure, seen) => make.mutateAsync(backfillBody(spec, job.job, sure, seen)),
  });
}

function Choice({ job, draft, onDraft }: { job: Job; draft: BackfillDraft; onDraft: OnDraft }) {
  const cleaning = {
    kind: "reset",
    contexts: null,
    clean: false,
    toRun: null,
    ctx: "",
    isNow: null,
    typed: "",
  } as const;
  return (
    <Stack gap={4}>
      <Text>
        This takes the job back, together with every job downstream that has read the runs it undoes. The next run of
        each reads that input again.
      </Text>
      <Toggle
        isOn={draft.isFromStart}
        onToggle={(isFromStart) => onDraft({ isFromStart })}
        label="Back to before its first run"
      />
      {!draft.isFromStart && (
        <PointField typed={draft.to} onTyped={(to) => onDraft({ to })}>
          A run number, a run id, or a time with a time zone, such as 2026-11-19T08:00:00Z, which keeps the runs
          committed by then.
        </PointField>
      )}
      <CleanChoice
        isClean={draft.clean}
        obstacle={lackOfClean(cleaning, job)}
        onClean={(clean) => onDraft({ clean })}
      />
      <Toggle
        isOn={draft.force}
        onToggle={(force) => onDraft({ force })}
        label="Stop runs that are using these jobs from committing"
      />
      <Field.Root invalid={draft.price !== "" && priceOf(draft.price) === undefined}>
        <Field.Label>Price of an hour of a run</Field.Label>
        <Input
          inputMode="decimal"
          maxW="12rem"
          value={draft.price}
          onChange={(event) => onDraft({ price: event.currentTarget.value })}
        />
        <Field.HelperText>Optional, in any currency: the preview then shows the expected cost.</Field.HelperText>
        <Field.ErrorText>Enter a number, such as 1.20.</Field.ErrorText>
      </Field.Root>
    </Stack>
  );
}

function Toggle({ isOn, onToggle, label }: { isOn: boolean; onToggle: (isOn: boolean) => void; label: string }) {
  return (
    <Switch.Root checked={isOn} onCheckedChange={({ checked }) => onToggle(checked)}>
      <Switch.HiddenInput />
      <Switch.Control />
      <Switch.Label>{label}</Switch.Label>
    </Switch.Root>
  );
}

interface PlanProps {
  seen: BackfillPreview;
  draft: BackfillDraft;
  onDraft: OnDraft;
}

const COLUMNS = [
  { title: "Job" },
  { title: "Goes back to" },
  { title: "Runs undone", isNumber: true },
  { title: "Read again" },
  { title: "Expected" },
  { title: "Reason" },
];

function Plan({ seen, draft, onDraft }: PlanProps) {
  const twice = [...new Set(seen.steps.flatMap((step) => step.written_twice))];
  return (
    <>
      {seen.steps.some(({ doubts }) => doubts.length > 0) && (
        <Alert.Root status="warning">
          <Alert.Indicator />
          <Alert.Content>
            {seen.steps.flatMap(({ job, doubts }) =>
              doubts.map((doubt) => (
                <Text key={`${job} ${doubt}`} wordBreak="break-word">
                  {job}: {doubt}
                </Text>
              )),
            )}
          </Alert.Content>
        </Alert.Root>
      )}
      {twice.length > 0 && <TwiceAlert targets={twice} unknown={[]} />}
      <Facts facts={backfillFactsOf(seen, priceOf(draft.price))} />
      <StateMarks of={seen.steps.map(({ job, state }) => [job, state])} />
      <Box maxH="18rem" overflowY="auto">
        <ScrollTable caption="Jobs that go back, in this order" columns={COLUMNS}>
          {seen.steps.map((step) => (
            <Table.Row key={step.job}>
              <Table.Cell wordBreak="break-all">{step.job}</Table.Cell>
              <Table.Cell>{whereInWords(step)}</Table.Cell>
              <Table.Cell textAlign="end">{step.undone_run_count}</Table.Cell>
              <Table.Cell>{step.read_again === null ? "–" : againInWords(step.read_again)}</Table.Cell>
              <Table.Cell>{step.seconds === null ? "–" : duration(Math.ceil(step.seconds))}</Table.Cell>
              <Table.Cell wordBreak="break-word">{becauseInWords(step)}</Table.Cell>
            </Table.Row>
          ))}
        </ScrollTable>
      </Box>
      {seen.steps.map((step) => (
        <Refusal key={step.job} step={step} draft={draft} onDraft={onDraft} isRoot={step.job === seen.job} />
      ))}
      <Apart what="Left out" jobs={draft.leave} onBack={(job) => onDraft({ leave: without(draft.leave, job) })} />
      <Apart what="Keep their output" jobs={draft.keep} onBack={(job) => onDraft({ keep: without(draft.keep, job) })} />
    </>
  );
}

interface RefusalProps {
  step: BackfillStep;
  draft: BackfillDraft;
  onDraft: OnDraft;
  isRoot: boolean;
}

/** Why a job can't go back, and what to do without it. */
function Refusal({ step, draft, onDraft, isRoot }: RefusalProps) {
  if (step.refused === null) return null;
  return (
    <Box borderWidth="1px" borderColor="border.error" borderRadius="md" p={3}>
      <Text wordBreak="break-word">
        {step.job} can't go back: {step.refused}
      </Text>
      <Flex gap={2} mt={2} wrap="wrap">
        {!isRoot && (
          <Button size="xs" variant="outline" onClick={() => onDraft({ leave: [...draft.leave, step.job] })}>
            Leave out {step.job}
          </Button>
        )}
        {step.clean && (
          <Button size="xs" variant="outline" onClick={() => onDraft({ keep: [...draft.keep, step.job] })}>
            Keep the output of {step.job}
          </Button>
        )}
      </Flex>
    </Box>
  );
}

/** Jobs that a person has set apart, each with a way back. */
function Apart({ what, jobs, onBack }: { what: string; jobs: readonly string[]; onBack: (job: string) => void }) {
  if (jobs.length === 0) return null;
  return (
    <Flex gap={2} wrap="wrap" alignItems="center">
      <Text>{what}:</Text>
      {jobs.map((job) => (
        <Tag.Root key={job}>
          <Tag.Label>{job}</Tag.Label>
          <Tag.EndElement>
            <Tag.CloseTrigger aria-label={`Include ${job} again`} onClick={() => onBack(job)} />
          </Tag.EndElement>
        </Tag.Root>
      ))}
    </Flex>
  );
}

function without(jobs: readonly string[], job: string): string[] {
  return jobs.filter((each) => each !== job);
}
