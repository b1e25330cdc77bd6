import type { Changed, ShardedBody, ShardedPreview, ShardedSpec } from "../api/model";
import { count } from "../words/number";
import type { Confirmation } from "./changeSpec";
import { contextName, type Settled } from "./setting";
import { againInWords, consumersInWords, type Fact, removedInWords } from "./words";

export type ShardedKind = ShardedSpec["kind"];

/** What the form of a change of a sharded job holds. */
export interface ShardedDraft {
  kind: ShardedKind;
  /** A run id or a time, as typed. */
  to: string;
  /** Only these; null: all of them. */
  contexts: readonly string[] | null;
  clean: boolean;
}

/** Return the change that a form asks for, or what it lacks to be one. */
export function shardedSpecOf({ kind, to, contexts, clean }: ShardedDraft): Settled<ShardedSpec> {
  if (contexts?.length === 0) return { lacks: "a context" };
  const scope = contexts === null ? { clean } : { clean: false, contexts: [...contexts].sort() };
  if (kind === "reset") return { value: { kind, ...scope } };
  return to.trim() === "" ? { lacks: "a run id or a time" } : { value: { kind, to: to.trim(), ...scope } };
}

/** Name a change of a sharded job, as a button does. */
export function shardedActionName(spec: ShardedSpec): string {
  const of = spec.contexts == null ? "all shards" : `${spec.contexts.map(contextName).join(", ")} in all shards`;
  return spec.kind === "reset" ? `Reset ${of}` : `Rewind ${of} to ${spec.to}`;
}

/** Say what a change of a sharded job would do, line by line: sums over its shards. */
export function shardedFactsOf(seen: ShardedPreview): Fact[] {
  const same = seen.unchanged_shards;
  const removed = removedInWords(seen.files_to_clean, seen.outputs_to_clean ?? 0);
  return [
    {
      label: "Virtual shards",
      says: count(seen.shards, "shard"),
      ...(same > 0 ? { note: `${count(same, "shard")} unchanged, because already there` } : {}),
    },
    { label: "Runs undone", says: seen.undone_run_count === 0 ? "none" : count(seen.undone_run_count, "run") },
    { label: "Read again", says: againInWords(seen.read_again) },
    {
      label: "Consumers affected",
      says: consumersInWords({ consumers: seen.consumers, hiddenConsumers: seen.hidden_consumers }),
    },
    ...(removed === undefined
      ? []
      : [{ label: "Removed", says: `${removed}, by the next runs. This can't be undone.` }]),
    ...(seen.files_left_by_undone_runs === 0
      ? []
      : [{ label: "Output left by earlier undone runs", says: leftInWords(seen.files_left_by_undone_runs) }]),
    ...(seen.unreadable_runs.length === 0
      ? []
      : [{ label: "Can't be read", says: `${seen.unreadable_runs.join(", ")}; not counted above` }]),
  ];
}

/** Return the body that makes a change, of the job as it was previewed. */
export function shardedBody(spec: ShardedSpec, job: string, sure: Confirmation, version: number): ShardedBody {
  return { ...spec, reason: sure.reason.trim(), expected_version: version, confirm: job, force: sure.force };
}

/** Say of a change that was made in how many shards; undefined where the job has none. */
export function shardsInWords({ shards }: Pick<Changed, "shards">): string | undefined {
  return shards == null ? undefined : `${count(shards, "virtual shard")}, each with its own event.`;
}

function leftInWords(left: number | null): string {
  return left === null ? "unknown" : count(left, "file");
}
