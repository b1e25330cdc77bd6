import { List, Stack, Text } from "@chakra-ui/react";
import type { Difference, EventRow, RunRow } from "../api/model";
import { Ago } from "../parts/Ago";
import { StateBadge } from "../parts/StateBadge";
import { readWords } from "../words/amount";
import { inBytes } from "../words/number";
import { Marks, type Pair } from "./Marks";
import { eventName } from "./words";

/** What happened to a job since a person looked at it. */
export function ConflictView({ difference }: { difference: Difference }) {
  const { runs, events, watermarks, version_seen, version_now } = difference;
  const marks = Object.entries(watermarks).map(([ctx, { seen, now }]): [string, Pair] => [ctx, [seen, now]]);
  return (
    <Stack gap={3}>
      <Text>
        You previewed version {version_seen}; the job is now at version {version_now}.
      </Text>
      {runs.length > 0 && (
        <List.Root ps={5}>
          {runs.map((run) => (
            <RunItem key={`${run.number} ${run.fence}`} run={run} />
          ))}
        </List.Root>
      )}
      <Events events={events} />
      <Marks
        caption="Watermarks in your preview and now"
        heads={["In your preview", "Now"]}
        rows={Object.fromEntries(marks)}
      />
    </Stack>
  );
}

function RunItem({ run }: { run: RunRow }) {
  const sizes = [readWords(run), run.bytes == null ? undefined : inBytes(run.bytes)].filter(
    (words) => words !== undefined,
  );
  const size = sizes.length === 0 ? "" : `, read ${sizes.join(", ")}`;
  return (
    <List.Item wordBreak="break-word">
      Run {run.number} <StateBadge state={run.state} /> <Ago at={run.committed_at} />
      {size}
      {run.run_id == null ? "" : `, by ${run.run_id}`}
    </List.Item>
  );
}

/** Changes, requests and decisions: who, when, why. */
export function Events({ events }: { events: readonly EventRow[] }) {
  if (events.length === 0) return null;
  return (
    <List.Root ps={5}>
      {events.map((event, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: events have no id, and the list does not change
        <List.Item key={index} wordBreak="break-word">
          <strong>{eventName(event)}</strong> by {event.who ?? "an unknown user"}, <Ago at={event.at} />
          {event.why ? `: ${event.why}` : ""}
        </List.Item>
      ))}
    </List.Root>
  );
}
