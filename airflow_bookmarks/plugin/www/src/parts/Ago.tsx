import { useEffect, useState } from "react";
import { ago, inZone, timeOf } from "../words/time";

const TICK_MS = 10_000;

/** How long ago a time was; the time itself, in the zone of whoever looks, is its tooltip. */
export function Ago({ at }: { at: string | null | undefined }) {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const time = timeOf(at);
  if (time === undefined) return <>{at ?? "never"}</>;
  return (
    <time dateTime={time.toISOString()} title={inZone(time)}>
      {ago(time, now)}
    </time>
  );
}
