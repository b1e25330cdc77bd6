import {
  keepPreviousData,
  skipToken,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { changeShards, makeChange, previewChange, previewShards, requestChange } from "./changes";
import client, { ApiError, take, takeText } from "./client";
import type {
  BackfillBody,
  BackfillSpec,
  ChangeBody,
  ChangeSpec,
  OwnerBody,
  OwnerSpec,
  RequestBody,
  ShardedBody,
  ShardedSpec,
} from "./model";
import type { paths } from "./schema";
import * as shapes from "./shape";

/** What the list of jobs can be asked for. */
export type JobsQuery = NonNullable<paths["/api/v1/jobs"]["get"]["parameters"]["query"]>;

export const RUNS_PER_PAGE = 50;

// A page that is left open keeps up by itself; folders are listed only when somebody asks.
const REFRESH_MS = 15_000;

// Older than this is what was recorded while nobody looked: the server reads it anew, and has it in some seconds.
const OLD_HEALTH_MS = 120_000;
const SOON_MS = 3_000;

/**
 * Whether asking again may help: the way there failed, or the store did not answer. A refusal stays one, and whoever has
 * waited for an answer in vain is told so.
 */
export function mayHelpToAskAgain(failures: number, error: Error): boolean {
  if (failures >= 2 || !(error instanceof ApiError)) return false;
  return error.failure === "unreachable" || error.failure === "gateway" || error.status === 503;
}

export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => take(client.GET("/api/v1/me", { signal }), shapes.ME),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

function isOld(asOf: string | null | undefined): boolean {
  return asOf != null && Date.now() - Date.parse(asOf) > OLD_HEALTH_MS;
}

export function useJobs(query: JobsQuery) {
  return useQuery({
    queryKey: ["jobs", query],
    queryFn: ({ signal }) => take(client.GET("/api/v1/jobs", { params: { query }, signal }), shapes.JOBS),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => (data?.unjudged || isOld(data?.health_as_of) ? SOON_MS : REFRESH_MS),
  });
}

/** The requests of all jobs that wait for approval; `offset` and `limit` are of jobs. */
export function useWaitingRequests(offset: number, limit: number) {
  const query = { offset, limit };
  return useQuery({
    queryKey: ["jobs", "requests", query],
    queryFn: ({ signal }) =>
      take(client.GET("/api/v1/requests", { params: { query }, signal }), shapes.WAITING_REQUESTS),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => (data?.unjudged || isOld(data?.as_of) ? SOON_MS : REFRESH_MS),
  });
}

export function useJobsOfDag(dagId: string, taskId: string | undefined, offset: number, limit: number) {
  const query = { offset, limit, ...(taskId === undefined ? {} : { task_id: taskId }) };
  return useQuery({
    queryKey: ["jobs", "of dag", dagId, query],
    queryFn: ({ signal }) =>
      take(
        client.GET("/api/v1/dags/{dag_id}/jobs", { params: { path: { dag_id: dagId }, query }, signal }),
        shapes.JOBS,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
}

export function useJob(job: string) {
  return useQuery({
    queryKey: ["job", job],
    queryFn: ({ signal }) => take(client.GET("/api/v1/jobs/{job}", { params: { path: { job } }, signal }), shapes.JOB),
    refetchInterval: REFRESH_MS,
  });
}

export function useRuns(job: string) {
  return useInfiniteQuery({
    queryKey: ["job", job, "runs"],
    queryFn: ({ signal, pageParam }) => {
      const query = { limit: RUNS_PER_PAGE, ...(pageParam === null ? {} : { before: pageParam }) };
      return take(client.GET("/api/v1/jobs/{job}/runs", { params: { path: { job }, query }, signal }), shapes.RUNS);
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    // To refresh is to ask for every loaded page again: not for whoever reads old ones.
    refetchInterval: (query) => (query.state.data?.pages.length === 1 ? REFRESH_MS : false),
  });
}

export function useFiles(job: string, number: number, offset: number, limit: number) {
  return useQuery({
    queryKey: ["job", job, "files", number, offset, limit],
    queryFn: ({ signal }) =>
      take(
        client.GET("/api/v1/jobs/{job}/runs/{number}/files", {
          params: { path: { job, number }, query: { offset, limit } },
          signal,
        }),
        shapes.FILES,
      ),
    placeholderData: keepPreviousData,
  });
}

/** The files that a job has set aside because they can't be parsed. */
export function useQuarantined(job: string, offset: number, limit: number) {
  const query = { offset, limit };
  return useQuery({
    queryKey: ["job", job, "quarantined", offset, limit],
    queryFn: ({ signal }) =>
      take(
        client.GET("/api/v1/jobs/{job}/quarantined", { params: { path: { job }, query }, signal }),
        shapes.QUARANTINED,
      ),
    placeholderData: keepPreviousData,
  });
}

/** All that is stored of a job, as a text to save. A person asks for it. */
export function useExport(job: string) {
  return useMutation({
    mutationFn: () =>
      takeText(
        client.GET("/api/v1/jobs/{job}/export", { params: { path: { job } }, parseAs: "text" }),
        shapes.EXPORTED,
      ),
  });
}

export function useEvents(job: string, offset: number, limit: number) {
  return useQuery({
    queryKey: ["job", job, "events", offset, limit],
    queryFn: ({ signal }) =>
      take(
        client.GET("/api/v1/jobs/{job}/events", { params: { path: { job }, query: { offset, limit } }, signal }),
        shapes.EVENTS,
      ),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
}

/** What the next run would read. It may take a look at folders, so a person asks for it and not a timer. */
export function usePending(job: string, isWanted: boolean) {
  return useQuery({
    queryKey: ["job", job, "pending"],
    queryFn: ({ signal }) =>
      take(client.GET("/api/v1/jobs/{job}/pending", { params: { path: { job } }, signal }), shapes.PENDING),
    enabled: isWanted,
  });
}

/** How far the job is behind what it reads. It may take a look at folders, like `usePending`. */
export function useLag(job: string, isWanted: boolean) {
  return useQuery({
    queryKey: ["job", job, "lag"],
    queryFn: ({ signal }) =>
      take(client.GET("/api/v1/jobs/{job}/lag", { params: { path: { job } }, signal }), shapes.LAGS),
    enabled: isWanted,
  });
}

/** What runs have read of each part of a source. It goes through many runs, so a person asks for it. */
export function usePartitions(job: string, isWanted: boolean) {
  return useQuery({
    queryKey: ["job", job, "partitions"],
    queryFn: ({ signal }) =>
      take(client.GET("/api/v1/jobs/{job}/partitions", { params: { path: { job } }, signal }), shapes.PARTITIONS),
    enabled: isWanted,
  });
}

export function useGraph(job: string) {
  return useQuery({
    queryKey: ["job", job, "graph"],
    queryFn: ({ signal }) =>
      take(client.GET("/api/v1/jobs/{job}/graph", { params: { path: { job } }, signal }), shapes.GRAPH),
  });
}

/** What a change would do. It is made once: what a person looks at must not change below them. */
export function usePreview(job: string, spec: ChangeSpec | undefined) {
  return useQuery({
    queryKey: ["preview", job, spec],
    queryFn: spec === undefined ? skipToken : ({ signal }) => previewChange(job, spec, signal),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  });
}

/** Make a change. Never by itself a second time: a lost reply is not a failure. */
export function useChange(job: string) {
  return useMutation({
    mutationFn: (body: ChangeBody) => makeChange(job, body),
    onSettled: useForgetting(job),
  });
}

/** What a change of whose a job is would do; made once, as `usePreview`. */
export function useOwnershipPreview(job: string, spec: OwnerSpec | undefined) {
  return useQuery({
    queryKey: ["preview of the owner", job, spec],
    queryFn:
      spec === undefined
        ? skipToken
        : ({ signal }) =>
            take(
              client.POST("/api/v1/jobs/{job}/ownership/preview", { params: { path: { job } }, body: spec, signal }),
              shapes.OWNERSHIP_PREVIEW,
            ),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  });
}

/** What a change of a sharded job would do; made once, as `usePreview`. */
export function useShardedPreview(job: string, spec: ShardedSpec | undefined) {
  return useQuery({
    queryKey: ["preview of the shards", job, spec],
    queryFn: spec === undefined ? skipToken : ({ signal }) => previewShards(job, spec, signal),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  });
}

/** Change all virtual shards of a job. */
export function useShardedChange(job: string) {
  return useMutation({
    mutationFn: (body: ShardedBody) => changeShards(job, body),
    onSettled: useForgetting(job),
  });
}

/** What a backfill would do, to a job and to everything downstream of it; made once, as `usePreview`. */
export function useBackfillPreview(job: string, spec: BackfillSpec | undefined) {
  return useQuery({
    queryKey: ["preview of the backfill", job, spec],
    queryFn:
      spec === undefined
        ? skipToken
        : ({ signal }) =>
            take(
              client.POST("/api/v1/jobs/{job}/backfill/preview", { params: { path: { job } }, body: spec, signal }),
              shapes.BACKFILL_PREVIEW,
            ),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  });
}

/** Take a job back with everything downstream of it. */
export function useBackfill(job: string) {
  return useMutation({
    mutationFn: (body: BackfillBody) =>
      take(client.POST("/api/v1/jobs/{job}/backfill", { params: { path: { job } }, body }), shapes.CHANGED),
    onSettled: useForgetting(job),
  });
}

/** Change whose a job is. */
export function useOwnership(job: string) {
  return useMutation({
    mutationFn: (body: OwnerBody) =>
      take(client.POST("/api/v1/jobs/{job}/ownership", { params: { path: { job } }, body }), shapes.CHANGED),
    onSettled: useForgetting(job),
  });
}

/** Ask for a change of a protected job. */
export function useAsk(job: string) {
  return useMutation({
    mutationFn: (body: RequestBody) => requestChange(job, body),
    onSettled: useForgetting(job),
  });
}

export function useProtect(job: string) {
  return useMutation({
    mutationFn: (reason: string) =>
      take(
        client.POST("/api/v1/jobs/{job}/protection", { params: { path: { job } }, body: { reason } }),
        shapes.CHANGED,
      ),
    onSettled: useForgetting(job),
  });
}

export interface Unlock {
  reason: string;
  held_by: string;
  confirm: string;
}

export function useUnlock(job: string) {
  return useMutation({
    mutationFn: (body: Unlock) =>
      take(client.POST("/api/v1/jobs/{job}/unlock", { params: { path: { job } }, body }), shapes.CHANGED),
    onSettled: useForgetting(job),
  });
}

export function useApprove(job: string, id: string) {
  return useMutation({
    mutationFn: (force: boolean) =>
      take(
        client.POST("/api/v1/jobs/{job}/requests/{id}/approve", { params: { path: { job, id } }, body: { force } }),
        shapes.CHANGED,
      ),
    onSettled: useForgetting(job),
  });
}

export function useReject(job: string, id: string) {
  return useMutation({
    mutationFn: (reason: string) =>
      take(
        client.POST("/api/v1/jobs/{job}/requests/{id}/reject", { params: { path: { job, id } }, body: { reason } }),
        shapes.REQUESTED,
      ),
    onSettled: useForgetting(job),
  });
}

const EVENTS_LOOKED_AT = 50;

/** Read what is noted of a job, by hand: after a change whose answer was lost. */
export function useLook(job: string) {
  const forget = useForgetting(job);
  return useMutation({
    mutationFn: () => {
      const query = { offset: 0, limit: EVENTS_LOOKED_AT };
      return take(client.GET("/api/v1/jobs/{job}/events", { params: { path: { job }, query } }), shapes.EVENTS);
    },
    onSettled: forget,
  });
}

/** Return what lets the page ask anew for all that a change of a job may have moved: a refusal tells that it did. */
function useForgetting(job: string): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: ["job", job] });
    void queries.invalidateQueries({ queryKey: ["jobs"] });
  };
}
