import type { Job, RequestRow } from "../api/model";

/** What somebody may do about a request. */
export interface Decision {
  mayApprove: boolean;
  mayReject: boolean;
  /** Why it can't be approved by them; undefined where it can. */
  why: string | undefined;
  /** What the two are called: what was approved before is applied, and whoever requested it withdraws it. */
  approve: string;
  reject: string;
}

/** Whether a request waits for somebody: what is void, expired or decided does not. */
export function isWaiting({ state }: RequestRow): boolean {
  return state === "open" || state === "approved";
}

export function decisionOf(job: Pick<Job, "may_change">, request: RequestRow): Decision {
  const names = {
    approve: request.state === "approved" ? "Apply" : "Approve",
    // Who may change the job and may not approve, asked for it.
    reject: job.may_change && !request.may_approve ? "Withdraw" : "Reject",
  };
  if (!isWaiting(request)) return { ...names, mayApprove: false, mayReject: false, why: MEANS[request.state] };
  if (!job.may_change) {
    const why = "You don't have permission to change this job; someone else must approve this.";
    return { ...names, mayApprove: false, mayReject: false, why };
  }
  const why = request.may_approve ? undefined : "You requested this; someone else must approve it.";
  return { ...names, mayApprove: request.may_approve, mayReject: true, why };
}

/** What a state of a request means. */
export const MEANS: Readonly<Record<string, string>> = {
  open: "Waiting for a decision.",
  approved: "Approved, but not applied yet: the job was busy, or refused the change.",
  done: "Approved and applied.",
  rejected: "Rejected.",
  expired: "Expired before anyone decided.",
  void: "The job has changed since this was requested, so its preview no longer applies.",
};
