import { Button, HStack, Text } from "@chakra-ui/react";
import { ago, inZone } from "../words/time";
import { useNow } from "./useNow";

const TICK_MS = 1_000;

interface UpdatedProps {
  /** The answer that is shown. */
  of: { dataUpdatedAt: number };
  onRefresh: () => void;
}

/** How old is what is shown, and a button that asks for it anew. */
export function Updated({ of, onRefresh }: UpdatedProps) {
  const now = useNow(TICK_MS);
  if (of.dataUpdatedAt === 0) return null;
  const at = new Date(of.dataUpdatedAt);
  return (
    <HStack gap={2} fontSize="xs" color="fg.muted" whiteSpace="nowrap">
      <Text>
        Updated{" "}
        <time dateTime={at.toISOString()} title={inZone(at)}>
          {ago(at, now)}
        </time>
      </Text>
      <Button size="xs" variant="outline" onClick={onRefresh}>
        Refresh
      </Button>
    </HStack>
  );
}
