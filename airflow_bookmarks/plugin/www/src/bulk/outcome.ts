import { changeShards, makeChange, requestChange } from "../api/changes";
import { ApiError } from "../api/client";
import type { Changed, ChangeSpec, Preview, Requested } from "../api/model";
import { changeBody, requestBody } from "../change/changeSpec";
import { shardedBody } from "../change/sharded";
import { mayHaveBeenMade } from "../change/trouble";
import { inFull } from "../words/number";
import { type BulkSpec, type BulkStep, isActive, isCutOff, stepInWords } from "./plan";

/** What became of a job. */
export type Outcome = { job: string } & (
  | { fate: "changed"; answer: Changed }
  | { fate: "requested"; answer: Requested }
  | { fate: "refused"; error: ApiError }
  /** Nobody has answered: it may have been made. */
  | { fate: "unconfirmed"; error: ApiError }
  /** Nothing was sent. */
  | { fate: "untouched"; why: string }
);

/** Make the change of one job, by the version that was previewed: each is a transaction of its own. */
export async function carryOut({ looked, isForced }: BulkStep, spec: BulkSpec, reason: string): Promise<Outcome> {
  const { job } = looked.picked;
  const sure = { reason, typed: job, force: isForced };
  try {
    if (looked.of === "nothing") return { job, fate: "refused", error: looked.error };
    if (looked.of === "shards") {
      const body = shardedBody(spec, job, sure, looked.seen.version);
      return { job, fate: "changed", answer: await changeShards(job, body) };
    }
    const { seen } = looked;
    const own = specAsSeen(spec, seen);
    return seen.needs_approval
      ? { job, fate: "requested", answer: await requestChange(job, requestBody(own, job, reason, seen.version)) }
      : { job, fate: "changed", answer: await makeChange(job, changeBody(own, job, sure, seen.version)) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { job, fate: mayHaveBeenMade(error) ? "unconfirmed" : "refused", error };
  }
}

/** Return the change of one job as it was previewed: a rewind to the run that was found there. */
export function specAsSeen({ kind, clean }: BulkSpec, { to_run }: Pick<Preview, "to_run">): ChangeSpec {
  return kind === "reset" ? { kind, clean } : { kind, to_run, clean };
}

/**
 * Change one job after the other, and return what became of each. The others go on after a refusal; once a person stops
 * it, or no request would arrive any more, those that are left stay as they are.
 */
export async function carryOutAll(
  steps: readonly BulkStep[],
  make: (step: BulkStep) => Promise<Outcome>,
  { isStopped, onDone }: { isStopped: () => boolean; onDone: (jobs: number) => void },
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let ended: string | undefined;
  for (const step of steps) {
    const { job } = step.looked.picked;
    ended ??= isStopped() ? "Not sent, because you stopped." : undefined;
    if (!isActive(step)) outcomes.push({ job, fate: "untouched", why: stepInWords(step) });
    else if (ended !== undefined) outcomes.push({ job, fate: "untouched", why: ended });
    else {
      const outcome = await make(step);
      outcomes.push(outcome);
      ended = whyEnded(outcome);
      onDone(outcomes.filter(({ fate }) => fate !== "untouched").length);
    }
  }
  return outcomes;
}

/** Say why the request after this one would not arrive either; undefined where it may. */
function whyEnded(outcome: Outcome): string | undefined {
  if (outcome.fate !== "refused" && outcome.fate !== "unconfirmed") return undefined;
  if (!isCutOff(outcome.error)) return undefined;
  return `Not sent, because ${outcome.error.status === 401 ? "you are logged out" : "Airflow can't be reached"}.`;
}

/** Return the jobs for which nothing is left to do. */
export function doneJobs(outcomes: readonly Outcome[]): string[] {
  return outcomes.filter(({ fate }) => fate === "changed" || fate === "requested").map(({ job }) => job);
}

/** The order in which outcomes are shown: first what a person has to look at. */
export const SHOWN_ORDER: readonly Outcome["fate"][] = ["unconfirmed", "refused", "untouched", "requested", "changed"];

const WORDS: Record<Outcome["fate"], string> = {
  changed: "changed",
  requested: "requested",
  refused: "refused",
  unconfirmed: "not confirmed",
  untouched: "left unchanged",
};

/** Say how many jobs came to what: "2 changed, 1 refused". */
export function outcomesInWords(outcomes: readonly Outcome[]): string {
  return [...SHOWN_ORDER]
    .reverse()
    .map((fate) => [outcomes.filter((each) => each.fate === fate).length, WORDS[fate]] as const)
    .filter(([number]) => number > 0)
    .map(([number, words]) => `${inFull(number)} ${words}`)
    .join(", ");
}

/** Say whether what was done stands in Airflow's audit log as well; undefined where nothing was done. */
export function auditInWords(outcomes: readonly Outcome[]): string | undefined {
  const answers = outcomes.flatMap((each) =>
    each.fate === "changed" || each.fate === "requested" ? [each.answer.audited] : [],
  );
  if (answers.length === 0) return undefined;
  const lacking = answers.filter((isAudited) => !isAudited).length;
  return lacking === 0
    ? "Each change is recorded in its job's history and in Airflow's audit log."
    : `Each change is recorded in its job's history, but ${inFull(lacking)} of them not in Airflow's audit log; the server log says why.`;
}
