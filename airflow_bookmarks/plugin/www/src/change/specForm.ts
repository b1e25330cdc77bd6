import type { ChangeSpec, Job, Preview } from "../api/model";
import { useAsk, useChange, usePreview } from "../api/queries";
import { useChangeForm } from "./changeForm";
import { changeBody, requestBody } from "./changeSpec";
import type { Settled } from "./setting";

/** Hold the form of a change of where one job stands: its preview, and what becomes of it. */
export function useSpecForm(job: Job, settled: Settled<ChangeSpec>) {
  const change = useChange(job.job);
  const ask = useAsk(job.job);
  return useChangeForm<ChangeSpec, Preview>({
    job: job.job,
    settled,
    preview: usePreview(job.job, "value" in settled ? settled.value : undefined),
    look: (seen, isBusy) => ({
      version: seen.version,
      needsApproval: seen.needs_approval,
      isHeld: isInTheWay(seen, job, isBusy),
      lacks: [],
    }),
    make: (spec, sure, seen) =>
      seen.needs_approval
        ? ask.mutateAsync(requestBody(spec, job.job, sure.reason, seen.version))
        : change.mutateAsync(changeBody(spec, job.job, sure, seen.version)),
  });
}

/**
 * Whether a run has to lose the job first. One whose lease ran out is fenced without being told to, and of a request
 * the approver says.
 */
function isInTheWay(seen: Preview, job: Job, isBusy: boolean): boolean {
  return !seen.needs_approval && (isBusy || (seen.holder !== null && job.state !== "EXPIRED"));
}
