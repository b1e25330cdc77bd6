import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import type { Changed, Requested } from "../api/model";
import { type Confirmation, lacking } from "./changeSpec";
import { type Sent, useSending } from "./sending";
import type { Settled } from "./setting";
import { troubleOf } from "./trouble";

/** What of a preview decides how its change is confirmed and sent. */
export interface Looked {
  version: number;
  /** Whether it is sent as a request, for another person to approve. */
  needsApproval: boolean;
  /** Whether a run holds the job, and has to lose it first. */
  isHeld: boolean;
  /** What else the change lacks, in words. */
  lacks: readonly string[];
}

interface ChangeFormProps<ChangeSpec, Seen> {
  job: string;
  /** What the first step asks for, or what it lacks. */
  settled: Settled<ChangeSpec>;
  preview: UseQueryResult<Seen, Error>;
  /** `isBusy`: the server has refused the change because a run holds the job. */
  look: (seen: Seen, isBusy: boolean) => Looked;
  make: (spec: ChangeSpec, sure: Confirmation, seen: Seen) => Promise<Changed | Requested>;
}

/** The form of a change: its preview, what the person confirms, and the result once it is sent. */
export interface ChangeForm<ChangeSpec, Seen> {
  job: string;
  spec: ChangeSpec | undefined;
  preview: UseQueryResult<Seen, Error>;
  /** The preview, once it is there and no other is on its way. */
  seen: Seen | undefined;
  looked: Looked | undefined;
  missing: readonly string[];
  sure: Confirmation;
  confirm: (said: Partial<Confirmation>) => void;
  sent: Sent<Changed | Requested>;
  isSending: boolean;
  /** The version that was previewed when the change was sent. */
  sentVersion: number;
  /** Forget a refusal, and that a run may lose the job: another change is asked for. */
  reopen: () => void;
  lookAgain: () => void;
  submit: () => void;
}

/** Hold the form of a change, its preview, and what became of it when it was sent. */
export function useChangeForm<ChangeSpec, Seen>(
  props: ChangeFormProps<ChangeSpec, Seen>,
): ChangeForm<ChangeSpec, Seen> {
  const { job, settled, preview, look, make } = props;
  const [sure, setSure] = useState<Confirmation>({ reason: "", typed: "", force: false });
  const [sentVersion, setSentVersion] = useState(0);
  const { sent, isSending, send, reopen: forgetRefusal } = useSending<Changed | Requested>();
  const spec = "value" in settled ? settled.value : undefined;
  const seen = preview.isFetching || preview.isError ? undefined : preview.data;
  const offer = sent.phase === "refused" ? troubleOf(sent.error).offer : undefined;
  const looked = seen === undefined ? undefined : look(seen, offer === "force");
  const isHeld = looked?.isHeld ?? false;
  const missing =
    "lacks" in settled
      ? [settled.lacks]
      : [...(looked?.lacks ?? []), ...lacking(job, sure, { isHeld, isOld: offer === "preview" })];
  const confirm = (said: Partial<Confirmation>) => setSure((before) => ({ ...before, ...said }));
  // What was said of the run that held the job then is not said of the one that holds it now.
  const reopen = () => {
    forgetRefusal();
    confirm({ force: false });
  };
  const lookAgain = () => {
    reopen();
    void preview.refetch();
  };
  const submit = () => {
    if (seen === undefined || looked === undefined || spec === undefined || missing.length > 0) return;
    setSentVersion(looked.version);
    send(() => make(spec, { ...sure, force: isHeld && sure.force }, seen));
  };
  return {
    job,
    spec,
    preview,
    seen,
    looked,
    missing,
    sure,
    confirm,
    sent,
    isSending,
    sentVersion,
    reopen,
    lookAgain,
    submit,
  };
}
