import type { ContextRow } from "../api/model";
import { currentZone, momentOf } from "../words/zone";

/** How a context can be set by hand, which is a matter of its kind. */
export type Setting =
  | { by: "time" }
  | { by: "run"; upstream: string }
  /** By a text that its kind alone reads. */
  | { by: "text" }
  /** Not at all, and why. */
  | { by: "nothing"; why: string };

/** What a form says, as the API takes it; or what it lacks, in words. */
export type Settled<T> = { value: T } | { lacks: string };

const STATE_KIND = "state";
const STATE_CONTEXT = ".state";
const MOST = 9_999_999_999; // a run number has ten digits at most
const WALL_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/;

/** Name a context as its script does: what it keeps is `job.state` there. */
export function contextName(ctx: string): string {
  return ctx === STATE_CONTEXT ? "job.state" : ctx;
}

/** Say why the page does not offer what requires listing files, and where it is offered. */
export function noLook(what: string): string {
  return `${what}, which the API server isn't allowed to do: its setting [bookmarks] look_below is empty.`;
}

/**
 * Return how a context can be set: the rules of `lifecycle.change.set_position`, so that a refusal comes early.
 * `mayLook`: whether the page may look at files.
 */
export function settingOf({ ctx, kind, set_by, upstream }: ContextRow, mayLook: boolean): Setting {
  if (set_by === "time" && !mayLook) {
    return {
      by: "nothing",
      why: `${noLook(`Setting ${ctx} requires listing its files`)} Use the command line: airflow-bookmarks set.`,
    };
  }
  if (set_by === "time") return { by: "time" };
  if (set_by === "run") return { by: "run", upstream: upstream ?? ctx };
  if (set_by === "text") return { by: "text" };
  if (kind === STATE_KIND)
    return { by: "nothing", why: "Set values of job.state on the command line, with set-state." };
  return { by: "nothing", why: `${ctx} is of kind ${kind}, which can't be set here.` };
}

/** Return a time, as an input has it in the zone that is chosen in Airflow, in UTC: "2026-05-03T08:00:00.000Z". */
export function settleTime(typed: string, zone = currentZone()): Settled<string> {
  if (typed === "") return { lacks: "a time" };
  const wall = new Date(`${typed}Z`);
  if (!WALL_TIME.test(typed) || Number.isNaN(wall.getTime())) return { lacks: BOUNDS };
  const at = momentOf(wall, zone);
  if (at === undefined) return { lacks: `a time that exists in ${zone}, where clocks skip this one` };
  // The zone may lead out of the years that the API takes.
  return [wall, at].every((each) => isOfYears1To9999(each)) ? { value: at.toISOString() } : { lacks: BOUNDS };
}

const BOUNDS = "a time between the years 1 and 9999";

function isOfYears1To9999(at: Date): boolean {
  return at.getUTCFullYear() >= 1 && at.getUTCFullYear() <= 9999;
}

/** Return a text as its kind reads it; the server says what is wrong with it. */
export function settleText(typed: string): Settled<string> {
  const text = typed.trim();
  return text === "" ? { lacks: "a position" } : { value: text };
}

/** Return the number of an upstream's run; 0 stands for before its first one. */
export function settleRun(typed: string): Settled<number> {
  const text = typed.trim();
  if (text === "") return { lacks: "a run number" };
  if (!/^[0-9]+$/.test(text)) return { lacks: "a run number, in digits" };
  const number = Number(text);
  return number > MOST ? { lacks: "a run number of at most ten digits" } : { value: number };
}
