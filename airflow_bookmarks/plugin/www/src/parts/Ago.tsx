import { ago, agoOrAhead, inZone, timeOf } from "../words/time";
import { useNow } from "./useNow";

const TICK_MS = 10_000;

interface AgoProps {
  at: string | null | undefined;
  /** Whether it may lie ahead: the end of a lease does, and what has happened never does. */
  mayLieAhead?: boolean;
}

/** How long ago a time was; the time itself, in the zone that is chosen in Airflow, is its tooltip. */
export function Ago({ at, mayLieAhead = false }: AgoProps) {
  const now = useNow(TICK_MS);
  const time = timeOf(at);
  if (time === undefined) return <>{at ?? "never"}</>;
  return (
    <time dateTime={time.toISOString()} title={inZone(time)}>
      {mayLieAhead ? agoOrAhead(time, now) : ago(time, now)}
    </time>
  );
}
