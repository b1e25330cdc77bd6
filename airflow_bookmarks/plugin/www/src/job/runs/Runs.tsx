import { Button, Flex, Skeleton, Stack, Text } from "@chakra-ui/react";
import { useMemo, useRef } from "react";
import { useSearchParams } from "react-router-dom";
import type { Job, RunRow } from "../../api/model";
import { useRuns } from "../../api/queries";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { Section } from "../../parts/Section";
import { count } from "../../words/number";
import { withPart } from "../address";
import { ContextPicker } from "./ContextPicker";
import { Legend } from "./Legend";
import { RunDrawer } from "./RunDrawer";
import { RunTable } from "./RunTable";
import { canRewindTo, contextsOf, keyOf, newestLiving } from "./run";
import { Timeline } from "./Timeline";
import { usePickedContext } from "./usePickedContext";

// Each is a row of the timeline and of the table: a page of many more answers no key in time.
const MOST_RUNS = 300;

interface RunsProps {
  job: Job;
  onPicked: (run: RunRow) => void;
}

/** The runs of a job, newest first: as a timeline of what they read, and as a table. */
export function Runs({ job, onPicked }: RunsProps) {
  const query = useRuns(job.job);
  const runs = useMemo(() => query.data?.pages.flatMap((page) => page.runs), [query.data]);
  return (
    <Stack gap={4}>
      {query.error && <Problem error={query.error} onRetry={() => query.refetch()} />}
      {query.isPending && <Skeleton height={64} aria-label="Loading the runs" />}
      {runs?.length === 0 && (
        <Empty title="No runs yet">The first run of the job appears here as soon as it has a plan.</Empty>
      )}
      {runs && runs.length > 0 && <Found job={job} runs={runs} onPicked={onPicked} />}
      {runs && runs.length > 0 && (
        <Flex gap={3} alignItems="center" wrap="wrap">
          {query.hasNextPage && runs.length < MOST_RUNS && (
            <Button
              size="sm"
              variant="outline"
              loading={query.isFetchingNextPage}
              onClick={() => query.fetchNextPage()}
            >
              More
            </Button>
          )}
          <Text fontSize="sm" color="fg.muted">
            {!query.hasNextPage && runs.length > 1 && "All "}
            {count(runs.length, "run")} loaded{query.hasNextPage && "; there are older ones"}
            {query.hasNextPage && runs.length >= MOST_RUNS && ": see airflow-bookmarks history"}
          </Text>
        </Flex>
      )}
    </Stack>
  );
}

function Found({ job, runs, onPicked }: RunsProps & { runs: readonly RunRow[] }) {
  const [search, setSearch] = useSearchParams();
  const contexts = useMemo(() => contextsOf(runs), [runs]);
  const ctx = usePickedContext(contexts);
  const open = runs.find((run) => keyOf(run) === search.get("run"));
  const opener = useRef<HTMLElement>(null);
  const show = (run: RunRow) => {
    opener.current = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    setSearch(withPart(search, "run", keyOf(run)));
  };
  // A dialog opens only when the drawer is gone: of two at once one would lose the focus to the other.
  const wanted = useRef<RunRow>(undefined);
  const close = () => setSearch(withPart(search, "run", undefined), { replace: true });
  // Airflow mounts the page anew when its address changes for the first time: what was pressed may be gone.
  const focusBack = (run: RunRow) => {
    const row = document.querySelector<HTMLElement>(`[data-run="${keyOf(run)}"]`);
    (opener.current?.isConnected ? opener.current : row)?.focus();
    if (wanted.current !== undefined) onPicked(wanted.current);
    wanted.current = undefined;
  };
  const rewindFromDrawer = (run: RunRow) => {
    wanted.current = run;
    close();
  };
  const wasSet = job.contexts.some((context) => context.set_in_epoch !== null);
  const newest = useMemo(() => newestLiving(runs), [runs]);
  const mayRewind = (run: RunRow) => job.may_change && !job.is_deleted && canRewindTo(run, newest, wasSet);
  const picker = <ContextPicker contexts={contexts} ctx={ctx} />;
  return (
    <>
      <Section title="Timeline" hint="What each run read, newest first." actions={picker}>
        <Timeline runs={runs} ctx={ctx} onOpen={show} mayRewind={mayRewind} onRewind={onPicked} />
        <Legend runs={runs} />
      </Section>
      <Section title="Runs">
        <RunTable runs={runs} onOpen={show} mayRewind={mayRewind} onRewind={onPicked} />
      </Section>
      {search.has("run") && !open && (
        <Text fontSize="sm">The run in the address isn't loaded. If it is an older one, load more runs.</Text>
      )}
      <RunDrawer
        job={job.job}
        run={open}
        mayRewind={mayRewind}
        onRewind={rewindFromDrawer}
        onClose={close}
        onClosed={focusBack}
      />
    </>
  );
}
