import { Alert } from "@chakra-ui/react";
import { ago, inZone } from "../words/time";
import { isStale, type Shown } from "./shown";
import { useNow } from "./useNow";

const TICK_MS = 5_000;

/** Say that what is shown is out of date, and how old it is, while the server gives nothing newer. */
export function Stale({ of }: { of: Shown }) {
  const now = useNow(TICK_MS);
  if (!isStale(of, now)) return null;
  const at = new Date(of.dataUpdatedAt);
  return (
    <Alert.Root status="warning" role="status">
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title>This is out of date</Alert.Title>
        <Alert.Description>
          You are looking at data from {ago(at, now)} ({inZone(at)}); newer requests have failed.
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}
