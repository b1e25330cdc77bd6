import type { RunRow, Window } from "../../api/model";

/** The name of one run in the address and in lists: attempts that failed share a number, and have fences of their own. */
export function keyOf(run: Pick<RunRow, "number" | "fence">): string {
  return `${run.number}.${run.fence}`;
}

/** Whether a run is part of the history that counts now. */
export function isLiving(run: Pick<RunRow, "state">): boolean {
  return run.state === "COMMITTED" || run.state === "PUBLISHED";
}

/** Whether a run found nothing new of a context: its window ends where it began. */
export function isUnmoved(window: Window): boolean {
  return window.before === window.after;
}

/** Return the contexts of some runs, by name. */
export function contextsOf(runs: readonly RunRow[]): string[] {
  return [...new Set(runs.flatMap((run) => Object.keys(run.window)))].sort();
}

type Timed = Pick<RunRow, "planned_at" | "committed_at" | "published_at" | "revision" | "seconds">;

/**
 * Return how long a run took from its plan until consumers knew of it, in seconds; undefined while it is not done.
 *
 * A replay keeps the plan of the run that it makes again, from days before: its own time is that of its steps.
 */
export function secondsOf(run: Timed): number | undefined {
  const end = run.published_at ?? run.committed_at;
  if ((run.revision ?? 0) > 0) {
    const steps = Object.values(run.seconds ?? {})
      .map(Number)
      .filter(Number.isFinite);
    return end && steps.length > 0 ? steps.reduce((total, step) => total + step, 0) : undefined;
  }
  if (!run.planned_at || !end) return undefined;
  const seconds = (Date.parse(end) - Date.parse(run.planned_at)) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

/** Say what is out of the ordinary of a run; nothing for most. */
export function remarks(run: RunRow): string[] {
  const said: string[] = [];
  if (run.is_empty) said.push("empty");
  if ((run.attempt ?? 1) > 1) said.push(`attempt ${run.attempt}`);
  if ((run.revision ?? 0) > 0) said.push(run.revision === 1 ? "replayed" : `replayed ${run.revision} times`);
  if (run.option && run.option !== "enable") said.push(run.option);
  return said;
}

/** The number of the newest run that is living history; 0 where there is none. */
export function newestLiving(runs: readonly RunRow[]): number {
  return Math.max(0, ...runs.filter(isLiving).map((each) => each.number));
}

/** Whether going back to a run would change anything: it is living, and something was committed or set after it. */
export function canRewindTo(run: RunRow, newest: number, wasSet: boolean): boolean {
  return isLiving(run) && (run.number < newest || wasSet);
}
