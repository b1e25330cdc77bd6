import { useState } from "react";
import type { Changed, Job, Preview, Requested, RunRow, Wish } from "../api/model";
import { useAsk, useChange, usePreview } from "../api/queries";
import { useSending } from "./sending";
import { troubleOf } from "./trouble";
import { changeBody, type Draft, draftOf, type Kind, lacking, requestBody, type Sure, wishOf } from "./wish";

/** Hold the form of a change, its preview, and what became of it when it was sent. */
export function useChangeForm(job: Job, kind: Kind, picked: RunRow | undefined) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(kind, job, picked));
  const [sure, setSure] = useState<Sure>({ reason: "", typed: "", force: false });
  const settled = wishOf(draft, job);
  const wish = "value" in settled ? settled.value : undefined;
  const preview = usePreview(job.job, wish);
  const seen = preview.isFetching || preview.isError ? undefined : preview.data;
  const making = useMaking(job.job);
  const { sent } = making;
  const offer = sent.phase === "refused" ? troubleOf(sent.error).offer : undefined;
  const isHeld = seen !== undefined && isInTheWay(seen, job, offer === "force");
  const missing = "lacks" in settled ? [settled.lacks] : lacking(job.job, sure, { isHeld, isOld: offer === "preview" });
  const say = (said: Partial<Sure>) => setSure((before) => ({ ...before, ...said }));
  // What was said of the run that held the job then is not said of the one that holds it now.
  const lookAnew = () => {
    making.reopen();
    say({ force: false });
  };
  return {
    draft,
    sure,
    wish,
    preview,
    seen,
    sent,
    isSending: making.isSending,
    sentVersion: making.version,
    isHeld,
    missing,
    say,
    choose: (next: Draft) => {
      lookAnew();
      setDraft(next);
    },
    lookAgain: () => {
      lookAnew();
      void preview.refetch();
    },
    submit: () => {
      if (seen === undefined || wish === undefined || missing.length > 0) return;
      making.make(wish, { ...sure, force: isHeld && sure.force }, seen);
    },
  };
}

/**
 * Whether a run has to lose the job first. One whose lease ran out is fenced without being told to, and of a request
 * the approver says.
 */
function isInTheWay(seen: Preview, job: Job, isBusy: boolean): boolean {
  return !seen.needs_approval && (isBusy || (seen.holder !== null && job.state !== "EXPIRED"));
}

/** Make the change that was previewed; of a protected job, ask for it. */
function useMaking(job: string) {
  const change = useChange(job);
  const ask = useAsk(job);
  const [version, setVersion] = useState(0);
  const sending = useSending<Changed | Requested>();
  const make = (wish: Wish, sure: Sure, seen: Preview) => {
    setVersion(seen.version);
    sending.send(() =>
      seen.needs_approval
        ? ask.mutateAsync(requestBody(wish, job, sure.reason, seen.version))
        : change.mutateAsync(changeBody(wish, job, sure, seen.version)),
    );
  };
  return { ...sending, make, version };
}
