import { Alert, Box, Button, Collapsible, DataList, Heading, Link, Stack, Text } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { Link as RouterLink } from "react-router-dom";
import type { RunRow, Window } from "../../api/model";
import { Ago } from "../../parts/Ago";
import { MarkMove } from "../../parts/Mark";
import { duration } from "../../words/time";
import { logOf } from "../task";
import { type Fact, factsOf, leftOutOf } from "./details";
import { Phases } from "./Phases";
import { Replay } from "./Replay";
import { RunFiles } from "./RunFiles";
import { mayBeReplayed } from "./replay";
import { isLiving, isUnmoved, secondsOf } from "./run";

/** All that is known of one run. */
export function RunDetails({ job, run }: { job: string; run: RunRow }) {
  return (
    <Stack gap={6}>
      {run.error && (
        <Alert.Root status="error">
          <Alert.Indicator />
          <Alert.Description wordBreak="break-word" whiteSpace="pre-wrap">
            {run.error}
          </Alert.Description>
        </Alert.Root>
      )}
      <Who run={run} />
      {Object.keys(run.window).map((ctx) => (
        <Part key={ctx} title={`Context ${ctx}`}>
          <Context run={run} ctx={ctx} />
        </Part>
      ))}
      {Object.entries(run.outputs).map(([name, facts]) => (
        <Part key={name} title={`Output ${name}`}>
          <Facts facts={facts} />
        </Part>
      ))}
      {Object.keys(run.left_out).length > 0 && (
        <Part title="Left out by the script">
          <Said facts={leftOutOf(run)} />
        </Part>
      )}
      {Object.keys(run.seconds).length > 0 && (
        <Part title="Time">
          <Phases run={run} />
        </Part>
      )}
      <Files job={job} run={run} />
      {mayBeReplayed(run) && (
        <Part title="Replay">
          <Replay job={job} run={run} />
        </Part>
      )}
      <More run={run} />
    </Stack>
  );
}

function Files({ job, run }: { job: string; run: RunRow }) {
  const isUndone = run.state === "UNDONE";
  if ((run.files ?? 0) === 0 || !(isUndone || isLiving(run))) return null;
  return (
    <Part title="Files">
      {isUndone ? (
        <Text fontSize="sm">The files of an undone run are not listed.</Text>
      ) : (
        <RunFiles job={job} number={run.number} />
      )}
    </Part>
  );
}

/** What is of use to who looks into a defect. */
function More({ run }: { run: RunRow }) {
  return (
    <Collapsible.Root lazyMount>
      <Collapsible.Trigger asChild>
        <Button size="sm" variant="ghost">
          More
        </Button>
      </Collapsible.Trigger>
      <Collapsible.Content>
        <DataList.Root orientation="horizontal" size="sm" gap={2} pt={2}>
          <Line name="Epoch">{run.epoch ?? "unknown"}</Line>
          <Line name="Fence">{run.fence}</Line>
          {(run.revision ?? 0) > 0 && <Line name="Revision">{run.revision}</Line>}
        </DataList.Root>
      </Collapsible.Content>
    </Collapsible.Root>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Box as="section" minW={0}>
      <Heading as="h3" size="sm" mb={2} wordBreak="break-word">
        {title}
      </Heading>
      {children}
    </Box>
  );
}

function Who({ run }: { run: RunRow }) {
  const seconds = secondsOf(run);
  return (
    <DataList.Root orientation="horizontal" size="sm" gap={2}>
      <Line name="Run id">
        <Text wordBreak="break-all">{run.run_id ?? "unknown"}</Text>
      </Line>
      {run.task && (
        <Line name="Task">
          <Link asChild colorPalette="blue">
            <RouterLink to={logOf(run.task)}>Log of attempt {run.task.try_number}</RouterLink>
          </Link>
        </Line>
      )}
      <Line name="Attempt">{run.attempt ?? "unknown"}</Line>
      <Line name="Option">{run.option ?? "unknown"}</Line>
      <Line name="Planned">
        <Ago at={run.planned_at} />
      </Line>
      <Line name="Committed">
        <Ago at={run.committed_at} />
      </Line>
      <Line name="Published">
        <Ago at={run.published_at} />
      </Line>
      {seconds !== undefined && <Line name="Duration">{duration(seconds)}</Line>}
    </DataList.Root>
  );
}

function Context({ run, ctx }: { run: RunRow; ctx: string }) {
  const window = run.window[ctx];
  return (
    <Stack gap={2}>
      {window && (
        <Text fontSize="sm">
          <WindowWords window={window} order={run.order[ctx]} isLost={!(isLiving(run) || run.state === "UNDONE")} />
        </Text>
      )}
      <Facts facts={run.contexts[ctx] ?? {}} />
    </Stack>
  );
}

interface WindowWordsProps {
  window: Window;
  order: string | null | undefined;
  isLost: boolean;
}

function WindowWords({ window, order, isLost }: WindowWordsProps) {
  if (isLost && window.after === null) return "Watermark unchanged";
  if (isUnmoved(window)) return "No new input";
  return <MarkMove before={window.before} after={window.after} order={order} />;
}

function Facts({ facts }: { facts: Readonly<Record<string, unknown>> }) {
  const said = factsOf(facts);
  return said.length === 0 ? <Text fontSize="sm">No more details</Text> : <Said facts={said} />;
}

function Said({ facts }: { facts: readonly Fact[] }) {
  return (
    <DataList.Root orientation="horizontal" size="sm" gap={1}>
      {facts.map((fact) => (
        <Line key={fact.name} name={fact.name}>
          <Text wordBreak="break-word">{fact.said}</Text>
        </Line>
      ))}
    </DataList.Root>
  );
}

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <DataList.Item>
      <DataList.ItemLabel>{name}</DataList.ItemLabel>
      <DataList.ItemValue display="block">{children}</DataList.ItemValue>
    </DataList.Item>
  );
}
