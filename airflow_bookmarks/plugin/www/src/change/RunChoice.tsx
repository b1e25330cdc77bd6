import { Button, Field, NativeSelect } from "@chakra-ui/react";
import type { RunRow } from "../api/model";
import { useRuns } from "../api/queries";
import { Problem } from "../parts/Problem";
import { markWords } from "../words/mark";
import { inZone, timeOf } from "../words/time";
import { isRewindable } from "./changeSpec";

interface RunChoiceProps {
  job: string;
  picked: RunRow | undefined;
  toRun: number | null;
  onRun: (run: RunRow | undefined) => void;
}

/** Choose the run that stays the last one: those that committed and are history still. */
export function RunChoice({ job, picked, toRun, onRun }: RunChoiceProps) {
  const runs = useRuns(job);
  if (runs.isError) return <Problem error={runs.error} onRetry={() => void runs.refetch()} />;
  const known = withPicked(runs.data?.pages.flatMap((page) => page.runs).filter(isRewindable) ?? [], picked);
  const isUnfit = picked !== undefined && !isRewindable(picked);
  return (
    <Field.Root invalid={isUnfit && toRun === null}>
      <Field.Label>Keep runs up to and including</Field.Label>
      <NativeSelect.Root>
        <NativeSelect.Field
          data-first
          value={toRun ?? ""}
          onChange={(event) => onRun(known.find(({ number }) => `${number}` === event.currentTarget.value))}
        >
          <option value="">{runs.isPending ? "Loading runs" : nameOfNone(known)}</option>
          {known.map((run) => (
            <option key={run.number} value={run.number}>
              {runInWords(run)}
            </option>
          ))}
        </NativeSelect.Field>
        <NativeSelect.Indicator />
      </NativeSelect.Root>
      {isUnfit && (
        <Field.ErrorText>
          Run {picked.number} is {picked.state}. Choose a committed run that wasn't undone.
        </Field.ErrorText>
      )}
      <Field.HelperText>
        The job goes back to where this run ended, and later runs are undone. To undo all runs, use Reset.
      </Field.HelperText>
      {runs.hasNextPage && (
        <Button size="xs" variant="outline" loading={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          Load older runs
        </Button>
      )}
    </Field.Root>
  );
}

function nameOfNone(known: readonly RunRow[]): string {
  return known.length === 0 ? "No earlier run" : "Choose a run";
}

function withPicked(runs: RunRow[], picked: RunRow | undefined): RunRow[] {
  if (picked === undefined || !isRewindable(picked) || runs.some(({ number }) => number === picked.number)) return runs;
  return [...runs, picked].sort((one, other) => other.number - one.number);
}

function runInWords(run: RunRow): string {
  const at = timeOf(run.committed_at);
  const marks = Object.entries(run.watermark).map(
    ([ctx, mark]) => `${ctx} ${mark === null ? "nothing read" : markWords(mark, run.order[ctx])}`,
  );
  return [`Run ${run.number}`, ...(at === undefined ? [] : [inZone(at)]), ...marks].join(" \u00b7 ");
}
