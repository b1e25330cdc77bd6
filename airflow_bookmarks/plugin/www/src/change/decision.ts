import type { Job, RequestRow } from "../api/model";

/** What somebody may do about a request. */
export interface Decision {
  mayApprove: boolean;
  mayReject: boolean;
  /** Why it can't be approved by them; undefined where it can. */
  why: string | undefined;
  /** What the two are called: what was approved before is carried out, and whoever asked takes it back. */
  approve: string;
  reject: string;
}

/** Whether a request waits for somebody: what is void, expired or decided does not. */
export function isWaiting({ state }: RequestRow): boolean {
  return state === "open" || state === "approved";
}

export function decisionOf(job: Pick<Job, "may_change">, request: RequestRow): Decision {
  const names = {
    approve: request.state === "approved" ? "Carry it out" : "Approve",
    // Who may change the job and may not approve, asked for it.
    reject: job.may_change && !request.may_approve ? "Take it back" : "Reject",
  };
  if (!isWaiting(request)) return { ...names, mayApprove: false, mayReject: false, why: MEANS[request.state] };
  if (!job.may_change) {
    const why = "You may not change this job, so somebody else has to approve it.";
    return { ...names, mayApprove: false, mayReject: false, why };
  }
  const why = request.may_approve ? undefined : "You asked for it, so somebody else has to approve it.";
  return { ...names, mayApprove: request.may_approve, mayReject: true, why };
}

/** What a state of a request means. */
export const MEANS: Readonly<Record<string, string>> = {
  open: "Waiting for a decision.",
  approved: "Approved, but not carried out yet: the job was busy, or refused it.",
  done: "Approved and carried out.",
  rejected: "Rejected.",
  expired: "Expired before anyone decided.",
  void: "The job has changed since the request, so the preview that was shown no longer applies.",
};
