import { Skeleton, Stack, Table, Text } from "@chakra-ui/react";
import { useSearchParams } from "react-router-dom";
import type { EventRow } from "../../api/model";
import { useEvents } from "../../api/queries";
import { Ago } from "../../parts/Ago";
import { Empty } from "../../parts/Empty";
import { ExplainedBadge } from "../../parts/ExplainedBadge";
import { MarkMove } from "../../parts/Mark";
import { useOrders } from "../../parts/orders";
import { Pages } from "../../parts/Pages";
import { Problem } from "../../parts/Problem";
import { ScrollTable } from "../../parts/ScrollTable";
import { withPart } from "../address";
import { epochWords, eventWords, knownBy, movesOf } from "./events";

const LIMIT = 20;
const COLUMNS = [
  { title: "When" },
  { title: "Who" },
  { title: "What" },
  { title: "Why" },
  { title: "Watermarks" },
  { title: "Epoch" },
];

/** Who changed a job, when and why; newest first. */
export function Events({ job }: { job: string }) {
  const [search, setSearch] = useSearchParams();
  const page = Math.max(1, Number.parseInt(search.get("page") ?? "1", 10) || 1);
  const query = useEvents(job, (page - 1) * LIMIT, LIMIT);
  if (query.error) return <Problem error={query.error} onRetry={() => query.refetch()} />;
  if (!query.data) return <Skeleton height={40} aria-label="Loading the events" />;
  const { events, total } = query.data;
  if (total === 0) return <Empty title="No changes yet">Resets, rewinds, sets and undos appear here.</Empty>;
  const turn = (next: number) => setSearch(withPart(search, "page", next === 1 ? undefined : `${next}`));
  return (
    <Stack gap={3}>
      <ScrollTable caption="Events of the job, newest first" columns={COLUMNS}>
        {events.map((event, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an event has no name, and its place among others never changes
          <EventLine key={`${event.at} ${event.kind} ${index}`} event={event} />
        ))}
      </ScrollTable>
      <Pages
        of="events"
        total={total}
        page={page}
        limit={LIMIT}
        limits={[LIMIT]}
        onPage={turn}
        onLimit={() => turn(1)}
      />
    </Stack>
  );
}

function EventLine({ event }: { event: EventRow }) {
  const orders = useOrders();
  return (
    <Table.Row verticalAlign="top">
      <Table.Cell whiteSpace="nowrap">
        <Ago at={event.at} />
      </Table.Cell>
      <Table.Cell wordBreak="break-word" minW="8rem">
        {event.who ?? "unknown"}
        <Text fontSize="xs" color="fg.muted">
          {knownBy(event)}
        </Text>
      </Table.Cell>
      <Table.Cell minW="14rem" whiteSpace="normal">
        {eventWords(event)}
        {event.forced && (
          <ExplainedBadge
            ms={2}
            colorPalette="orange"
            variant="outline"
            means="the run that was using the job was stopped from committing"
          >
            forced
          </ExplainedBadge>
        )}
        {event.request && (
          <Text fontSize="xs" color="fg.muted" wordBreak="break-all">
            request {event.request}
          </Text>
        )}
      </Table.Cell>
      <Table.Cell minW="14rem" whiteSpace="normal" wordBreak="break-word">
        {event.why}
      </Table.Cell>
      <Table.Cell fontSize="xs">
        {movesOf(event).map((move) => (
          <Text key={move.ctx} whiteSpace="nowrap">
            {move.ctx}: <MarkMove before={move.before} after={move.after} order={orders[move.ctx]} />
          </Text>
        ))}
      </Table.Cell>
      <Table.Cell whiteSpace="nowrap">{epochWords(event)}</Table.Cell>
    </Table.Row>
  );
}
