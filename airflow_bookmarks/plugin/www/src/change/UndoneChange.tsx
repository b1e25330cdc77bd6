import { Text } from "@chakra-ui/react";
import { useEvents } from "../api/queries";
import { Ago } from "../parts/Ago";
import { newestChange } from "./newestChange";
import { eventName } from "./words";

// Requests, approvals and protections may stand above the change.
const LOOKED_AT = 5;

/** Say which change an undo takes back; nothing while that is not known. */
export function UndoneChange({ job }: { job: string }) {
  const event = newestChange(useEvents(job, 0, LOOKED_AT).data?.events ?? []);
  if (event === undefined) return null;
  return (
    <Text wordBreak="break-word" data-testid="taken-back">
      Undoes: {eventName(event)}, by {event.who ?? "an unknown user"}, <Ago at={event.at} />
      {event.why ? `: ${event.why}` : "."}
    </Text>
  );
}
