import type { OwnerBody, OwnerSpec, OwnershipPreview, RequestBody } from "../api/model";
import type { Settled } from "./setting";
import type { Fact } from "./words";

export type OwnerKind = OwnerSpec["kind"];

/** What the form of a change of an owner holds. Nothing of it is chosen before a person does. */
export interface OwnerDraft {
  kind: OwnerKind;
  /** The id of a DAG, as typed or picked. */
  dag: string;
  /** Whether that DAG is the owner under a new name; null: not said yet. */
  renamed: boolean | null;
}

const MOST = 250; // characters of the id of a DAG, as in Airflow

/** Return the change that a form asks for, or what it lacks to be one. */
export function ownerSpecOf({ kind, dag: typed, renamed }: OwnerDraft): Settled<OwnerSpec> {
  const dag = typed.trim();
  if (dag === "") return { lacks: "a DAG" };
  if ([...dag].length > MOST) return { lacks: `a DAG id of at most ${MOST} characters` };
  if (kind !== "hand-over") return { value: { kind, dag } };
  return renamed === null ? { lacks: "what this DAG is" } : { value: { kind, dag, renamed } };
}

/** Name a change of an owner, as a button does. */
export function ownerActionName(spec: OwnerSpec): string {
  if (spec.kind === "share") return `Share with DAG ${spec.dag}`;
  if (spec.kind === "unshare") return `Stop sharing with DAG ${spec.dag}`;
  return spec.renamed ? `Rename the owner to DAG ${spec.dag}` : `Hand over to DAG ${spec.dag}`;
}

/** Say what a change of an owner would do, line by line. */
export function ownerFactsOf(seen: OwnershipPreview): Fact[] {
  return [
    { label: "Owner", says: moved(seen.seen.owner ?? "no single DAG", seen.owner ?? "no single DAG") },
    { label: "Shared with", says: moved(listed(seen.seen.shared_with), listed(seen.shared_with)) },
    { label: "Permission required on", says: moved(listed(seen.asked_of), listed(seen.asked_of_after)) },
    ...(seen.shards === null ? [] : [{ label: "Virtual shards", says: `${seen.shards}, one at a time` }]),
  ];
}

/** Say what a person should know before they do it. */
export function ownerWarningsOf(seen: OwnershipPreview): string[] {
  const unseen = `DAG ${seen.dag} not found or not visible to you. Check the spelling.`;
  const lost = `You won't be able to change this job afterwards, or to reverse this: ${rights(seen)}.`;
  const refused = `Runs of DAG ${seen.seen.owner} will be refused unless the job is shared with it.`;
  const isTaken =
    seen.change === "hand-over" && seen.seen.owner !== null && seen.asked_of_after.includes(seen.seen.owner);
  return [
    ...(seen.is_seen || seen.change === "unshare" ? [] : [unseen]),
    ...(seen.may_change_after ? [] : [lost]),
    ...(isTaken && !seen.shared_with.includes(seen.seen.owner ?? "") ? [refused] : []),
  ];
}

/** Return the body that makes a change of an owner, of the job as it was previewed. */
export function ownerBody(spec: OwnerSpec, job: string, reason: string, seen: OwnershipPreview): OwnerBody {
  return { ...spec, ...sureness(job, reason, seen) };
}

/** Return the body that asks somebody else to approve it; an unshare needs nobody. */
export function ownerRequestBody(
  spec: Exclude<OwnerSpec, { kind: "unshare" }>,
  job: string,
  reason: string,
  seen: OwnershipPreview,
): RequestBody {
  return { ...spec, ...sureness(job, reason, seen) };
}

function sureness(job: string, reason: string, { seen }: OwnershipPreview) {
  return {
    reason: reason.trim(),
    confirm: job,
    expected_version: seen.version,
    expected_owner: seen.owner,
    expected_shared_with: seen.shared_with,
  };
}

function rights({ asked_of_after: dags }: OwnershipPreview): string {
  return `that requires permission to edit the runs of ${dags.join(" and ")}`;
}

function listed(dags: readonly string[]): string {
  return dags.join(", ") || "none";
}

function moved(before: string, after: string): string {
  return before === after ? `${after} (unchanged)` : `${before} now; ${after} afterwards`;
}
