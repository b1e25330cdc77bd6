import client, { take } from "./client";
import type {
  ChangeBody,
  Changed,
  Preview,
  PreviewSpec,
  RequestBody,
  Requested,
  ShardedBody,
  ShardedPreview,
  ShardedSpec,
} from "./model";
import * as shapes from "./shape";

// What is asked of the server about the change of one job: for a dialog about it, and for many jobs one after another.

export function previewChange(job: string, spec: PreviewSpec, signal: AbortSignal): Promise<Preview> {
  return take(
    client.POST("/api/v1/jobs/{job}/preview", { params: { path: { job } }, body: spec, signal }),
    shapes.PREVIEW,
  );
}

export function makeChange(job: string, body: ChangeBody): Promise<Changed> {
  return take(client.POST("/api/v1/jobs/{job}/changes", { params: { path: { job } }, body }), shapes.CHANGED);
}

/** Ask somebody else to approve a change of a protected job. */
export function requestChange(job: string, body: RequestBody): Promise<Requested> {
  return take(client.POST("/api/v1/jobs/{job}/requests", { params: { path: { job } }, body }), shapes.REQUESTED);
}

export function previewShards(job: string, spec: ShardedSpec, signal: AbortSignal): Promise<ShardedPreview> {
  return take(
    client.POST("/api/v1/jobs/{job}/shards/preview", { params: { path: { job } }, body: spec, signal }),
    shapes.SHARDED_PREVIEW,
  );
}

export function changeShards(job: string, body: ShardedBody): Promise<Changed> {
  return take(client.POST("/api/v1/jobs/{job}/shards/changes", { params: { path: { job } }, body }), shapes.CHANGED);
}
