import type { BackfillBody, BackfillPreview, BackfillSpec, BackfillStep } from "../api/model";
import { count } from "../words/number";
import { duration } from "../words/time";
import type { Confirmation } from "./changeSpec";
import type { Settled } from "./setting";
import { againInWords, type Fact, removedInWords } from "./words";

/** What the form of a backfill holds. */
export interface BackfillDraft {
  /** Back to before the first run, and not to a point. */
  isFromStart: boolean;
  /** A run number, a run id, a time or a watermark, as typed. */
  to: string;
  clean: boolean;
  /** Readers that stay as they are. */
  leave: readonly string[];
  /** Jobs whose output stays although that of the others is removed. */
  keep: readonly string[];
  force: boolean;
  /** What an hour of a run costs, as typed. */
  price: string;
}

/** Return the backfill that a form asks for, or what it lacks to be one. */
export function backfillSpecOf({
  isFromStart,
  to,
  clean,
  leave,
  keep,
  force,
}: Omit<BackfillDraft, "price">): Settled<BackfillSpec> {
  if (!isFromStart && to.trim() === "") return { lacks: "the last run to keep" };
  return {
    value: { to: isFromStart ? null : to.trim(), clean, leave: [...leave], keep: clean ? [...keep] : [], force },
  };
}

/** Return the body that makes a backfill, by the plan that was looked at. */
export function backfillBody(spec: BackfillSpec, job: string, sure: Confirmation, seen: BackfillPreview): BackfillBody {
  return { ...spec, reason: sure.reason.trim(), confirm: job, expected_versions: seen.versions };
}

/** Name a backfill, as a button does. */
export function backfillName(seen: Pick<BackfillPreview, "steps"> | undefined): string {
  const moving = seen?.steps.filter(({ stands }) => !stands).length;
  return moving === undefined ? "Backfill" : `Take ${count(moving, "job")} back`;
}

/** Say what a plan lacks to be carried out. */
export function lacksOf({ steps }: Pick<BackfillPreview, "steps">): string[] {
  const refused = steps.filter((step) => step.refused !== null).map(({ job }) => job);
  if (refused.length > 0) return [`a decision on ${refused.join(", ")}, which can't go back`];
  return steps.every(({ stands }) => stands) ? ["a job that has to go back"] : [];
}

/** Return a price as it was typed; undefined where it is none. */
export function priceOf(typed: string): number | undefined {
  const price = Number(typed.trim().replace(",", "."));
  return typed.trim() !== "" && Number.isFinite(price) && price >= 0 ? price : undefined;
}

/** Return what the runs after it cost at a price per hour; null: their time is not known of each. */
function costOf({ steps }: Pick<BackfillPreview, "steps">, price: number): number | null {
  const moving = steps.filter(({ stands }) => !stands);
  return moving.some(({ seconds }) => seconds === null)
    ? null
    : (moving.reduce((sum, { seconds }) => sum + (seconds ?? 0), 0) * price) / 3600;
}

function costInWords(cost: number | null): string {
  return cost === null ? "unknown" : cost.toFixed(2);
}

/** Say the sums of a plan, line by line; the cost where a price is given. */
export function backfillFactsOf(seen: BackfillPreview, price?: number): Fact[] {
  const removed = removedInWords(seen.files_to_clean, seen.outputs_to_clean);
  const dags = seen.dag_runs.flatMap(({ dag_id }) => (dag_id === null ? [] : [dag_id]));
  const elsewhere = seen.dag_runs.flatMap(({ dag_id, is_here, jobs }) => (dag_id === null || is_here ? [] : jobs));
  const byHand = seen.dag_runs.flatMap(({ dag_id, jobs }) => (dag_id === null ? jobs : []));
  return [
    { label: "Jobs", says: count(seen.steps.length, "job"), ...noteOf(seen) },
    { label: "Runs undone", says: seen.undone_run_count === 0 ? "none" : count(seen.undone_run_count, "run") },
    { label: "Read again", says: againInWords(seen.read_again) },
    { label: "Expected time", says: seen.seconds === null ? "unknown" : duration(Math.ceil(seen.seconds)) },
    ...(price === undefined ? [] : [{ label: "Expected cost", says: costInWords(costOf(seen, price)) }]),
    ...(removed === undefined
      ? []
      : [{ label: "Removed", says: `${removed}, by the next runs. This can't be undone.` }]),
    ...(dags.length > 0 ? [{ label: "Then trigger, in this order", says: dags.join(", ") }] : []),
    ...(elsewhere.length > 0 ? [{ label: "In another Airflow", says: elsewhere.join(", ") }] : []),
    ...(byHand.length > 0 ? [{ label: "Then run manually", says: byHand.join(", ") }] : []),
  ];
}

function noteOf({ unaffected, left_out: left }: BackfillPreview): { note?: string } {
  const notes = [
    ...(unaffected.length > 0 ? [`unaffected: ${unaffected.join(", ")}`] : []),
    ...(left.length > 0 ? [`left out: ${left.join(", ")}`] : []),
  ];
  return notes.length > 0 ? { note: notes.join("; ") } : {};
}

/** Say where a job goes back to. */
export function whereInWords({ to_run: run, stands }: Pick<BackfillStep, "to_run" | "stands">): string {
  const where = run === null ? "before its first run" : `run ${run}`;
  return stands ? `${where}: already there` : where;
}

/** Say why a job goes back. */
export function becauseInWords({ because, is_root: isRoot }: Pick<BackfillStep, "because" | "is_root">): string {
  const upstreams = Object.entries(because).map(([job, number]) => `${job} (up to run ${number})`);
  if (upstreams.length > 0) return upstreams.join(", ");
  return isRoot ? "requested" : "output of undone runs";
}
