import type {
  BackfillPreview,
  Changed,
  EventList,
  ExportedJobs,
  FileList,
  Graph,
  Job,
  JobList,
  LagList,
  Me,
  OwnershipPreview,
  PartitionList,
  Pending,
  Preview,
  QuarantinedFiles,
  Requested,
  RunList,
  ShardedPreview,
  WaitingRequests,
} from "./model";

type Kind<V> = V extends readonly unknown[]
  ? "list"
  : V extends string
    ? "text"
    : V extends number
      ? "number"
      : V extends boolean
        ? "boolean"
        : "object";

// Never there: without it the compiler would take the shape of one answer for that of any other.
declare const OF: unique symbol;

/** What some fields of an answer are, as its type has them: those that always have a value. */
export type Shape<T> = { readonly [K in keyof T as null extends T[K] ? never : K]?: Kind<T[K]> } & {
  readonly [OF]?: (answer: T) => T;
};

/**
 * What the page relies on in each answer: enough to tell an answer of this API from that of another version, or of another
 * server. The rest is the business of the types that are made from the API's document.
 */
export const BACKFILL_PREVIEW: Shape<BackfillPreview> = {
  steps: "list",
  unaffected: "list",
  left_out: "list",
  versions: "object",
};
export const CHANGED: Shape<Changed> = { said: "text", audited: "boolean", watermarks: "object" };
export const EVENTS: Shape<EventList> = { events: "list", total: "number" };
export const EXPORTED: Shape<ExportedJobs> = { format: "number", namespace: "text", jobs: "object", blobs: "object" };
export const FILES: Shape<FileList> = { files: "list", total: "number", unlisted: "object" };
export const GRAPH: Shape<Graph> = { nodes: "list", reads: "list" };
export const JOB: Shape<Job> = {
  job: "text",
  state: "text",
  contexts: "list",
  consumers: "list",
  requests: "list",
  runs: "list",
  shard_rows: "list",
  order: "object",
};
export const JOBS: Shape<JobList> = { jobs: "list", total: "number" };
export const LAGS: Shape<LagList> = { lags: "list" };
export const ME: Shape<Me> = { name: "text", may: "object" };
export const OWNERSHIP_PREVIEW: Shape<OwnershipPreview> = { change: "text", asked_of: "list", seen: "object" };
export const PARTITIONS: Shape<PartitionList> = { partitions: "list" };
export const PENDING: Shape<Pending> = { contexts: "list", is_known: "boolean" };
export const PREVIEW: Shape<Preview> = {
  change: "text",
  version: "number",
  watermarks: "object",
  read_again: "object",
};
export const QUARANTINED: Shape<QuarantinedFiles> = { files: "list", total: "number" };
export const REQUESTED: Shape<Requested> = { said: "text", audited: "boolean", request: "object" };
export const RUNS: Shape<RunList> = { runs: "list" };
export const SHARDED_PREVIEW: Shape<ShardedPreview> = { change: "text", by_shard: "object", read_again: "object" };

export const WAITING_REQUESTS: Shape<WaitingRequests> = { requests: "list", damaged: "list", total: "number" };

/** Return the field by which an answer is not what was asked for, or "the whole"; undefined where it has the shape. */
export function misfit<T>(answer: unknown, shape: Shape<T>): string | undefined {
  if (kindOf(answer) !== "object") return "the whole";
  const fields = new Map<string, unknown>(Object.entries(answer as object));
  return Object.entries<unknown>(shape).find(([name, kind]) => kindOf(fields.get(name)) !== kind)?.[0];
}

function kindOf(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "list";
  return typeof value === "string" ? "text" : typeof value;
}
