import { useEffect, useState } from "react";

/** Draw the component anew every so often, and return the time at which it is drawn: data may be newer than the last tick. */
export function useNow(everyMs: number): Date {
  const [, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTicks((ticks) => ticks + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return new Date();
}
