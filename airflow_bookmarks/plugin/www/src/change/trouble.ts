import { ApiError } from "../api/client";
import { diagnosisOf } from "../api/diagnosis";
import type { Difference, EventRow } from "../api/model";

/** What can be done about a refusal. */
export type Offer =
  /** Take the job away from the run that holds it. */
  | "force"
  /** Look at a new preview. */
  | "preview"
  /** See whether the change was made. */
  | "look"
  | "nothing";

/** A change that was not made, or of which nobody knows, in words. */
export interface Trouble {
  title: string;
  message: string;
  wrong: readonly string[];
  offer: Offer;
  difference: Difference | undefined;
}

const TITLES: Record<string, [string, Offer]> = {
  BackfillStoppedError: ["Some jobs went back, others did not", "preview"],
  ApprovalError: ["Request can't be decided", "nothing"],
  ChangedMeanwhileError: ["The job has changed since your preview", "preview"],
  ChangeRefusedError: ["Change refused", "nothing"],
  FencedError: ["The job has changed since your preview", "preview"],
  LookRefusedError: ["The API server isn't allowed to list files", "nothing"],
  JobBusyError: ["A run is using this job", "force"],
  JobUnknownError: ["There is no such job", "nothing"],
  ProtectedError: ["The job is protected", "preview"],
  RequestUnknownError: ["There is no such request", "nothing"],
  ShardsBusyError: ["Runs are using shards of this job", "force"],
  ShardsLeftError: ["Some shards were changed, others were not", "preview"],
  RunUnknownError: ["There is no such run", "nothing"],
};

/** Say what a refusal means, and what to offer. */
export function troubleOf(error: Error): Trouble {
  const refusal = error instanceof ApiError ? error.refusal : undefined;
  const [title, offer] = headOf(error);
  return {
    title,
    message: error.message,
    wrong: (refusal?.wrong ?? []).map(({ where, what }) => `${where}: ${what}`),
    offer,
    difference: refusal?.difference ?? undefined,
  };
}

function headOf(error: Error): readonly [string, Offer] {
  if (mayHaveBeenMade(error)) return ["We couldn't confirm whether the change was made", "look"];
  if (!(error instanceof ApiError)) return ["Something went wrong", "nothing"];
  const name = error.refusal?.error ?? "";
  const known = Object.hasOwn(TITLES, name) ? TITLES[name] : undefined;
  if (known !== undefined) return known;
  if (error.status === 401) return ["You are logged out", "nothing"];
  if (error.status === 403) return ["You don't have permission to do this", "nothing"];
  if (error.status === 404) return ["This no longer exists", "nothing"];
  if (error.status === 422) return ["Invalid change", "nothing"];
  return [error.status >= 500 ? diagnosisOf(error).title : "Something went wrong", "nothing"];
}

/** Whether something that was sent may have been done although no answer says so: a lost reply is not a failure. */
export function mayHaveBeenMade(error: Error): boolean {
  if (!(error instanceof ApiError)) return false;
  // Whatever came instead of an answer, the request may have arrived.
  if (error.failure !== "refused" || error.status === 0) return true;
  return error.status >= 500 && !/nothing was (read or )?changed/i.test(error.message);
}

/** Return what ended a version of a job, or was asked for at it: newest first, as the events are. */
export function eventsAt(version: number, events: readonly EventRow[]): EventRow[] {
  return events.filter((event) => (event.version_before ?? -1) >= version);
}
