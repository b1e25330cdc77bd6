import { skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { isNameTyped, lackOfReason } from "../change/changeSpec";
import { useSending } from "../change/sending";
import { type ShardedDraft, shardedSpecOf } from "../change/sharded";
import { carryOut, carryOutAll, doneJobs, type Outcome } from "./outcome";
import { type BulkSpec, type BulkStep, bulkConfirmation, type Looked, lookAt, stepOf } from "./plan";
import type { PickedJob } from "./selection";

/** What the form of a change of many jobs holds. */
export interface BulkDraft extends Omit<ShardedDraft, "contexts"> {
  /** Whether runs lose the jobs that they hold. */
  force: boolean;
  reason: string;
  /** What is typed to be sure. */
  typed: string;
}

/** Hold the form of a change of many jobs: a preview of each, what the person confirms, and what became of each. */
export function useBulkForm(picked: readonly PickedJob[], draft: BulkDraft, onDone: (jobs: string[]) => void) {
  const [changed, setChanged] = useState(0);
  const isStopped = useRef(false);
  const { sent, isSending, send } = useSending<Outcome[]>();
  const forget = useForgetting();
  const settled = shardedSpecOf({ ...draft, contexts: null });
  const spec = "value" in settled ? settled.value : undefined;
  const { preview, looked } = usePreviews(picked, spec);
  const data = preview.data?.map((each) => stepOf(each, draft.force));
  const steps = preview.isFetching || preview.isError ? undefined : data;
  const confirmation = steps && bulkConfirmation(draft.kind, steps);
  const missing = "lacks" in settled ? [settled.lacks] : lacking(draft, steps, confirmation);
  const submit = () => {
    if (steps === undefined || spec === undefined || missing.length > 0) return;
    const make = (step: BulkStep) => carryOut(step, spec, draft.reason);
    const how = { isStopped: () => isStopped.current, onDone: setChanged };
    send(async () => {
      try {
        const outcomes = await carryOutAll(steps, make, how);
        onDone(doneJobs(outcomes));
        return outcomes;
      } finally {
        forget();
      }
    });
  };
  return {
    lacks: "lacks" in settled ? settled.lacks : undefined,
    preview: { ...preview, data },
    looked,
    steps,
    confirmation,
    missing,
    sent,
    isSending,
    changed,
    submit,
    stop: () => {
      isStopped.current = true;
    },
  };
}

/** Look at what a change would do to each of many jobs, one after the other: others use the server as well. */
function usePreviews(picked: readonly PickedJob[], spec: BulkSpec | undefined) {
  const [looked, setLooked] = useState(0);
  const lookAtAll = async (wanted: BulkSpec, signal: AbortSignal) => {
    const found: Looked[] = [];
    setLooked(0);
    for (const each of picked) {
      found.push(await lookAt(each, wanted, signal));
      setLooked(found.length);
    }
    return found;
  };
  const preview = useQuery({
    queryKey: ["preview of many jobs", picked.map(({ job }) => job), spec],
    queryFn: spec === undefined ? skipToken : ({ signal }) => lookAtAll(spec, signal),
    retry: false,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnReconnect: false,
    refetchOnWindowFocus: false,
  });
  return { preview, looked };
}

function lacking(draft: BulkDraft, steps: readonly BulkStep[] | undefined, confirmation: string | undefined): string[] {
  if (steps === undefined) return ["the preview"];
  if (confirmation === undefined) return ["a job that can be changed"];
  const reason = lackOfReason(draft.reason);
  return [
    ...(reason === undefined ? [] : [reason]),
    ...(isNameTyped(confirmation, draft.typed) ? [] : ["the confirmation"]),
  ];
}

/** Return what lets the page ask anew for all that changes of jobs may have moved. */
function useForgetting(): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: ["job"] });
    void queries.invalidateQueries({ queryKey: ["jobs"] });
  };
}
