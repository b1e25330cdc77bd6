import type { components } from "./schema";

type Schemas = components["schemas"];

export type Changed = Schemas["Changed"];
export type ContextRow = Schemas["ContextRow"];
export type Difference = Schemas["Difference"];
export type EventList = Schemas["EventList"];
export type EventRow = Schemas["EventRow"];
export type FileList = Schemas["FileList"];
export type FileRow = Schemas["FileRow"];
export type Gaps = Schemas["Gaps"];
export type Graph = Schemas["Graph"];
export type GraphNode = Schemas["GraphNode"];
export type GraphRead = Schemas["GraphRead"];
export type HealthNote = Schemas["HealthNote"];
export type HealthRow = Schemas["HealthRow"];
export type Job = Schemas["Job"];
export type JobList = Schemas["JobList"];
export type JobRow = Schemas["JobRow"];
export type LagList = Schemas["LagList"];
export type LagRow = Schemas["LagRow"];
export type PartitionList = Schemas["PartitionList"];
export type PartitionRow = Schemas["PartitionRow"];
export type Me = Schemas["Me"];
export type OwnershipPreview = Schemas["OwnershipPreview"];
export type Pending = Schemas["Pending"];
export type PendingRow = Schemas["PendingRow"];
export type Preview = Schemas["Preview"];
export type ExportedJobs = Schemas["ExportedJobs"];
export type QuarantinedFile = Schemas["QuarantinedFileRow"];
export type QuarantinedFiles = Schemas["QuarantinedFiles"];
export type Refusal = Schemas["Refusal"];
export type RequestRow = Schemas["RequestRow"];
export type Requested = Schemas["Requested"];
export type RunList = Schemas["RunList"];
export type RunPoint = Schemas["RunPoint"];
export type RunRow = Schemas["RunRow"];
export type SkippedFile = Schemas["SkippedFile"];
export type WaitingRequest = Schemas["WaitingRequest"];
export type WaitingRequests = Schemas["WaitingRequests"];
export type Window = Schemas["Window"];

/** A change as it is previewed. */
export type ChangeSpec =
  | Schemas["ResetSpec"]
  | (Schemas["RewindSpec"] & { to_run: number })
  | Schemas["SetSpec"]
  | Schemas["UndoSpec"]
  | Schemas["DeleteSpec"];
/** The same, where a rewind may also go to a point that is looked up in the history of the job. */
export type PreviewSpec = ChangeSpec | Schemas["RewindSpec"];
/** A change as it is made. */
export type ChangeBody = Schemas["Reset"] | Schemas["Rewind"] | Schemas["Set"] | Schemas["Undo"] | Schemas["DeleteJob"];
/** A change as somebody else is asked to approve it. */
export type RequestBody =
  | Schemas["ResetRequest"]
  | Schemas["RewindRequest"]
  | Schemas["SetRequest"]
  | Schemas["UndoRequest"]
  | Schemas["DeleteRequest"]
  | Schemas["UnprotectRequest"]
  | Schemas["ShareRequest"]
  | Schemas["HandOverRequest"];
/** A change of whose a job is, as it is previewed. */
export type OwnerSpec = Schemas["ShareSpec"] | Schemas["UnshareSpec"] | Schemas["HandOverSpec"];
/** A change of a sharded job, as it is previewed. */
export type ShardedSpec = Schemas["ResetSpec"] | Schemas["ShardedRewindSpec"];
/** The same as it is made. */
export type ShardedBody = Schemas["Reset"] | Schemas["ShardedRewind"];
export type ShardedPreview = Schemas["ShardedPreview"];
export type BackfillSpec = Schemas["BackfillSpec"];
export type BackfillBody = Schemas["BackfillBody"];
export type BackfillPreview = Schemas["BackfillPreview"];
export type BackfillStep = Schemas["BackfillStepRow"];
/** A change of an owner as it is made. */
export type OwnerBody = Schemas["Share"] | Schemas["Unshare"] | Schemas["HandOver"];
