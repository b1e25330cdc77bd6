import { previewChange, previewShards } from "../api/changes";
import { ApiError } from "../api/client";
import type { Preview, PreviewSpec, ShardedPreview, ShardedSpec } from "../api/model";
import { whereInWords } from "../change/backfill";
import { againInWords, type Fact, removedInWords } from "../change/words";
import { count, inFull } from "../words/number";
import { sentence } from "../words/sentence";
import type { PickedJob } from "./selection";

/** What is asked for all jobs: sharded or not, each looks up the point in its own history. */
export type BulkSpec = ShardedSpec;

/** What the preview of a job says, or why there is none. */
export type Looked = { picked: PickedJob } & (
  | { of: "job"; seen: Preview }
  | { of: "shards"; seen: ShardedPreview }
  | { of: "nothing"; error: ApiError }
);

/** What is to be done to a job, or why nothing is. */
export type Fate =
  | "change"
  /** It is protected: somebody else is asked to approve the change. */
  | "request"
  /** It is where it would go back to. */
  | "stands"
  /** A run holds it, and is not to lose it. */
  | "held"
  /** The server has refused the preview. */
  | "refused";

export interface BulkStep {
  looked: Looked;
  fate: Fate;
  /** Whether a run loses the job by it. */
  isForced: boolean;
}

/** Look at what a change would do to a job; what the server refuses is told of that job alone. */
export async function lookAt(picked: PickedJob, spec: BulkSpec, signal: AbortSignal): Promise<Looked> {
  try {
    return picked.shards == null
      ? { picked, of: "job", seen: await previewChange(picked.job, pointSpec(spec), signal) }
      : { picked, of: "shards", seen: await previewShards(picked.job, spec, signal) };
  } catch (error) {
    if (error instanceof ApiError && !isCutOff(error)) return { picked, of: "nothing", error };
    throw error;
  }
}

/** Whether a failure is of every request, and not of one job: nobody is logged in, or there is no way to the server. */
export function isCutOff({ status, failure }: ApiError): boolean {
  return status === 401 || failure === "unreachable" || failure === "offline";
}

/** Return a change of all jobs as one of them takes it that is not sharded. */
function pointSpec(spec: BulkSpec): PreviewSpec {
  return spec.kind === "reset" ? spec : { kind: spec.kind, to_run: spec.to, clean: spec.clean };
}

/** Decide what is to be done to a job. `force`: whether runs lose the jobs that they hold. */
export function stepOf(looked: Looked, force: boolean): BulkStep {
  if (looked.of === "nothing") return { looked, fate: "refused", isForced: false };
  if (isThere(looked)) return { looked, fate: "stands", isForced: false };
  // Whether a run is fenced by it, whoever approves it says.
  if (looked.of === "job" && looked.seen.needs_approval) return { looked, fate: "request", isForced: false };
  const isHeld = holdersOf(looked).length > 0;
  if (isHeld && !force) return { looked, fate: "held", isForced: false };
  return { looked, fate: "change", isForced: isHeld };
}

/** Whether something is sent for a job. */
export function isActive({ fate }: BulkStep): boolean {
  return fate === "change" || fate === "request";
}

function isThere(looked: Looked): boolean {
  if (looked.of === "job") return looked.seen.stands;
  return looked.of === "shards" && looked.seen.shards === 0;
}

/** Return the runs that hold a job. One whose lease ran out is fenced without being asked for. */
export function holdersOf(looked: Looked): string[] {
  if (looked.of === "nothing" || looked.picked.state === "EXPIRED") return [];
  if (looked.of === "shards") return Object.values(looked.seen.holders);
  return looked.seen.holder === null ? [] : [looked.seen.holder];
}

/** Say in a few words what would become of a job; a refusal is told by its own message. */
export function stepInWords({ looked, fate, isForced }: BulkStep): string {
  if (looked.of === "nothing") return sentence(looked.error.message);
  if (fate === "stands") return "Already there: nothing changes.";
  if (fate === "held") return `In use by ${holdersOf(looked).join(", ")}: nothing changes.`;
  const { seen } = looked;
  const where =
    looked.of === "shards"
      ? count(looked.seen.shards, "virtual shard")
      : `To ${whereInWords({ to_run: looked.seen.to_run === 0 ? null : looked.seen.to_run, stands: false })}`;
  const consumers = Object.keys(seen.consumers).length + seen.hidden_consumers;
  return [
    `${where}: ${seen.undone_run_count === 0 ? "no run" : count(seen.undone_run_count, "run")} undone`,
    `read again: ${againInWords(seen.read_again)}`,
    ...(consumers === 0 ? [] : [`${count(consumers, "consumer")} affected`]),
    ...(isForced ? [`${holdersOf(looked).join(", ")} can't commit`] : []),
  ].join("; ");
}

/** Return the previews of the jobs for which something is sent. */
function activePreviews(steps: readonly BulkStep[]): (Preview | ShardedPreview)[] {
  return steps.filter(isActive).flatMap(({ looked }) => (looked.of === "nothing" ? [] : [looked.seen]));
}

/** Return the targets that would hold rows twice, and those of them of which that is not known. */
export function twiceOf(steps: readonly BulkStep[]): { targets: string[]; unknown: string[] } {
  const seen = activePreviews(steps);
  const maybe = new Set(seen.flatMap(({ written_twice_unknown }) => written_twice_unknown ?? []));
  const surely = new Set(
    seen.flatMap(({ written_twice: twice, written_twice_unknown: unknown }) =>
      twice.filter((target) => !unknown?.includes(target)),
    ),
  );
  return {
    targets: [...new Set([...surely, ...maybe])].sort(),
    unknown: [...maybe].filter((target) => !surely.has(target)).sort(),
  };
}

/** Say what a change of many jobs would do in all, line by line. */
export function bulkFactsOf(steps: readonly BulkStep[]): Fact[] {
  const seen = activePreviews(steps);
  const sumOf = (each: (one: Preview | ShardedPreview) => number) => seen.reduce((sum, one) => sum + each(one), 0);
  const undone = sumOf((one) => one.undone_run_count);
  const removed = removedInWords(
    sumOf((one) => one.files_to_clean),
    sumOf((one) => one.outputs_to_clean ?? 0),
  );
  return [
    { label: "Jobs", says: fatesInWords(steps) },
    { label: "Runs undone", says: undone === 0 ? "none" : count(undone, "run") },
    { label: "Read again", says: againInWords(againInAll(seen.map(({ read_again }) => read_again))) },
    ...(removed === undefined
      ? []
      : [{ label: "Removed", says: `${removed}, by the next runs. This can't be undone.` }]),
  ];
}

const FATES: readonly (readonly [Fate, string])[] = [
  ["change", "to change"],
  ["request", "to request"],
  ["stands", "already there"],
  ["held", "in use by a run"],
  ["refused", "can't be changed"],
];

function fatesInWords(steps: readonly BulkStep[]): string {
  return FATES.map(([fate, words]) => [steps.filter((step) => step.fate === fate).length, words] as const)
    .filter(([number]) => number > 0)
    .map(([number, words]) => `${inFull(number)} ${words}`)
    .join(", ");
}

type ReadAgain = Preview["read_again"];

/** Return what is read again in all; what is not known of one job is not known in all. */
function againInAll(each: readonly ReadAgain[]) {
  const units = new Set(each.flatMap(({ amounts }) => Object.keys(amounts ?? {})));
  const known = (unit: string) => each.map(({ amounts }) => amounts?.[unit]).filter((amount) => amount !== undefined);
  return {
    files: total(each.map(({ files }) => files)),
    bytes: total(each.map(({ bytes }) => bytes)),
    rows: total(each.map(({ rows }) => rows)),
    amounts: Object.fromEntries([...units].map((unit) => [unit, total(known(unit))])),
  };
}

function total(values: readonly (number | null)[]): number | null {
  return values.reduce((sum, value) => (sum === null || value === null ? null : sum + value), 0);
}

/** Name a change of many jobs, as a button does; undefined where nothing is to be sent. */
export function bulkName(kind: BulkSpec["kind"], steps: readonly BulkStep[]): string | undefined {
  if (!steps.some(isActive)) return undefined;
  const changes = steps.filter(({ fate }) => fate === "change").length;
  const requests = steps.filter(({ fate }) => fate === "request").length;
  const verb = kind === "reset" ? "Reset" : "Rewind";
  if (changes === 0 || requests === 0) return `${verb} ${count(changes + requests, "job")}`;
  return `${verb} ${count(changes, "job")} and request it for ${inFull(requests)}`;
}

/** Return the words that a person types to be sure: what is done, and to how many jobs; undefined where to none. */
export function bulkConfirmation(kind: BulkSpec["kind"], steps: readonly BulkStep[]): string | undefined {
  if (!steps.some(isActive)) return undefined;
  return `${kind} ${count(steps.filter(isActive).length, "job")}`;
}
