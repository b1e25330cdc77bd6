/** What is known of the answer that is shown. */
export interface Shown {
  /** When it came, in milliseconds since 1970; 0 where there is none yet. */
  dataUpdatedAt: number;
  isError: boolean;
  /** How often it was asked for in vain since. */
  failureCount: number;
}

const STALE_MS = 60_000;

/** Whether what is shown is old because newer requests have failed; one that is merely not looked at gets old as well. */
export function isStale({ dataUpdatedAt, isError, failureCount }: Shown, now: Date): boolean {
  const hasFailed = isError || failureCount > 0;
  return hasFailed && dataUpdatedAt > 0 && now.getTime() - dataUpdatedAt > STALE_MS;
}
