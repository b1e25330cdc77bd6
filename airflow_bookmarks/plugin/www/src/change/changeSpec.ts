import type { ChangeBody, ChangeSpec, ContextRow, Job, RequestBody, RunRow } from "../api/model";
import { noLook, type Settled, settingOf, settleRun, settleText, settleTime } from "./setting";

export type Kind = ChangeSpec["kind"];

/** What the form of a change holds; what its kind does not use is left as it is. */
export interface Draft {
  kind: Kind;
  /** Only these; null: all of them. */
  contexts: readonly string[] | null;
  clean: boolean;
  toRun: number | null;
  ctx: string;
  /** null: nothing is chosen yet. To skip what is unread is never where a form begins. */
  isNow: boolean | null;
  /** A time or a run number, as typed. */
  typed: string;
}

/** What a person says to be sure. */
export interface Confirmation {
  reason: string;
  /** The name of the job, as typed. */
  typed: string;
  /** Take the job away from the run that holds it. */
  force: boolean;
}

export const MAX_REASON = 2000;

/** What of a job decides what a form offers. */
export type Offering = { contexts: readonly ContextRow[] } & Pick<Job, "may_look">;

export function draftOf(kind: Kind, { contexts, may_look }: Offering, picked: RunRow | undefined): Draft {
  const settable = contexts.find((row) => settingOf(row, may_look).by !== "nothing") ?? contexts[0];
  return {
    kind,
    contexts: null,
    clean: false,
    toRun: picked !== undefined && isRewindable(picked) ? picked.number : null,
    ctx: settable?.ctx ?? "",
    isNow: null,
    typed: "",
  };
}

/** Whether a job can go back to after a run: it committed, and is history still. */
export function isRewindable(run: RunRow): boolean {
  return run.state === "COMMITTED" || run.state === "PUBLISHED";
}

/** Return the change that a form asks for, or what it lacks to be one. */
export function changeSpecOf(draft: Draft, job: Offering): Settled<ChangeSpec> {
  if (draft.kind === "undo") return { value: { kind: "undo" } };
  const clean = draft.clean && job.may_look;
  if (draft.kind === "delete") return { value: { kind: "delete", clean } };
  if (draft.kind === "set") return settleSet(draft, job);
  if (draft.contexts?.length === 0) return { lacks: "a context" };
  // A change of some contexts undoes no run, so there is nothing to clean: the server refuses the two together.
  const scope = draft.contexts === null ? { clean } : { clean: false, contexts: [...draft.contexts].sort() };
  if (draft.kind === "reset") return { value: { kind: "reset", ...scope } };
  if (draft.toRun === null) return { lacks: "a run to rewind to" };
  return { value: { kind: "rewind", to_run: draft.toRun, ...scope } };
}

/** Say why nothing can be cleaned; null where it can. */
export function lackOfClean(draft: Draft, { may_look }: Pick<Job, "may_look">): string | null {
  if (!may_look) {
    return `${noLook("Removing it requires listing files")} Use the command line, with --clean.`;
  }
  const isWhole = draft.kind === "delete" || draft.contexts === null;
  return isWhole ? null : "Changing only some contexts undoes no run, so there is nothing to remove.";
}

function settleSet(draft: Draft, { contexts, may_look }: Offering): Settled<ChangeSpec> {
  const row = contexts.find(({ ctx }) => ctx === draft.ctx);
  if (row === undefined) return { lacks: "a context" };
  const setting = settingOf(row, may_look);
  if (setting.by === "nothing") return { lacks: "a context that can be set" };
  if (setting.by === "text") {
    const settled = settleText(draft.typed);
    return "lacks" in settled ? settled : { value: { kind: "set", ctx: row.ctx, value: settled.value } };
  }
  if (draft.isNow === null) return { lacks: "a new position" };
  if (draft.isNow) return { value: { kind: "set", ctx: row.ctx, value: "now" } };
  const settled = setting.by === "time" ? settleTime(draft.typed) : settleRun(draft.typed);
  return "lacks" in settled ? settled : { value: { kind: "set", ctx: row.ctx, value: settled.value } };
}

/** Say why a reason can't be sent; undefined where it can. */
export function lackOfReason(reason: string): string | undefined {
  if (reason.trim() === "") return "a reason";
  // As Python counts: characters outside the basic plane are one.
  const length = [...reason.trim()].length;
  return length > MAX_REASON ? `a reason of at most ${MAX_REASON} characters (this has ${length})` : undefined;
}

export function isNameTyped(job: string, typed: string): boolean {
  return typed.trim() === job;
}

/** What stands in the way of a change. */
export interface Obstacles {
  /** A run holds the job. */
  isHeld: boolean;
  /** The server said that the job is not what was previewed any more. */
  isOld: boolean;
}

/** Say what is missing before a change can be sent: empty where nothing is. */
export function lacking(job: string, sure: Confirmation, { isHeld, isOld }: Obstacles): string[] {
  const reason = lackOfReason(sure.reason);
  return [
    ...(isOld ? ["a refreshed preview"] : []),
    ...(isHeld && !sure.force ? ["stopping the current run from committing"] : []),
    ...(reason === undefined ? [] : [reason]),
    ...(isNameTyped(job, sure.typed) ? [] : ["the job's name"]),
  ];
}

/** Return the body that makes a change, of the version that was previewed. */
export function changeBody(spec: ChangeSpec, job: string, sure: Confirmation, version: number): ChangeBody {
  return { ...spec, ...sureness(job, sure.reason, version), force: sure.force };
}

/** Return the body that asks somebody else to approve a change. Whether a run is fenced, the approver says. */
export function requestBody(
  spec: ChangeSpec | { kind: "unprotect" },
  job: string,
  reason: string,
  version: number,
): RequestBody {
  return { ...spec, ...sureness(job, reason, version) };
}

function sureness(job: string, reason: string, version: number) {
  return { reason: reason.trim(), expected_version: version, confirm: job };
}
