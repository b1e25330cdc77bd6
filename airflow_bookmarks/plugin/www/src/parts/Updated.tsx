import { Button, HStack, Text } from "@chakra-ui/react";
import { ago, inZone, timeOf } from "../words/time";
import { useNow } from "./useNow";

const TICK_MS = 1_000;

interface UpdatedProps {
  /** The answer that is shown. */
  of: { dataUpdatedAt: number };
  /** As of when it is known which jobs are of which health; undefined where that is as new as all else. */
  healthAsOf?: string | null | undefined;
  onRefresh: () => void;
}

/** How old is what is shown, and a button that asks for it anew. */
export function Updated({ of, healthAsOf, onRefresh }: UpdatedProps) {
  const now = useNow(TICK_MS);
  if (of.dataUpdatedAt === 0) return null;
  const at = new Date(of.dataUpdatedAt);
  const health = timeOf(healthAsOf);
  return (
    <HStack gap={2} fontSize="xs" color="fg.muted" whiteSpace={{ base: "normal", md: "nowrap" }} ms="auto">
      <Text>
        Updated{" "}
        <time dateTime={at.toISOString()} title={inZone(at)}>
          {ago(at, now)}
        </time>
        {health !== undefined && (
          <>
            , health as of{" "}
            <time
              dateTime={health.toISOString()}
              title={`Each job is shown as it is now; which jobs are listed, and in which order, is as of ${inZone(health)}`}
            >
              {ago(health, now)}
            </time>
          </>
        )}
      </Text>
      <Button size="xs" variant="outline" onClick={onRefresh}>
        Refresh
      </Button>
    </HStack>
  );
}
