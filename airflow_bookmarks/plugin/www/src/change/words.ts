import type { ChangeSpec, EventRow } from "../api/model";
import { amountsInWords, count, inBytes } from "../words/number";
import { timesInZone } from "../words/time";
import type { ChangeSummary, NeverRead } from "./changeSummary";
import { contextName } from "./setting";

const MOST_RANGES = 12; // a job may have a hundred thousand runs, and a sentence has an end
const MOST_TARGETS = 10; // many jobs have many, and what comes below has to be found

/** A line of a preview: its label and what it says. */
export interface Fact {
  label: string;
  says: string;
  /** What follows from it. */
  note?: string;
}

const WENT_BACK = "Their next run fails unless on_rewind says otherwise.";

/** Name a change, as a button does: "Rewind to run 4". */
export function actionName(spec: ChangeSpec): string {
  if (spec.kind === "undo") return "Undo the last change";
  if (spec.kind === "delete") return "Delete the bookmark";
  if (spec.kind === "set") return `Set ${spec.ctx} to ${timesInZone(`${spec.value}`)}`;
  const of = spec.contexts == null ? "" : spec.contexts.map(contextName).join(", ");
  if (spec.kind === "reset") return of === "" ? "Reset the job" : `Reset ${of}`;
  return of === "" ? `Rewind to run ${spec.to_run}` : `Rewind ${of} to run ${spec.to_run}`;
}

/** Name a change with a small letter in front, to go on a sentence. */
export function inSentence(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1);
}

/** Name the change that a request is for; its facts are as the store has them. */
export function requestName(change: Readonly<Record<string, unknown>>): string {
  const { kind, to_run, ctx, value, clean } = change;
  const contexts = Array.isArray(change.contexts) ? change.contexts.join(", ") : "";
  const also = clean === true ? " and remove the undone runs' output" : "";
  if (kind === "reset") return `Reset ${contexts || "the job"}${also}`;
  if (kind === "rewind") return `Rewind ${contexts === "" ? "" : `${contexts} `}to run ${to_run}${also}`;
  if (kind === "set") return `Set ${ctx} to ${timesInZone(`${value}`)}`;
  if (kind === "relocate") return `Read ${ctx} below ${change.to_root} instead of ${change.from_root}`;
  if (kind === "rename-context") return `Rename the context ${ctx} to ${change.to_ctx}`;
  if (kind === "set-state") return `Set job.state ${change.state} to ${value}`;
  if (kind === "undo") return "Undo the last change";
  if (kind === "unprotect") return "Unprotect the job";
  if (kind === "share") return `Share the job with DAG ${change.dag}`;
  if (kind === "hand-over" && change.renamed === true) return `Rename the owner of the job to DAG ${change.dag}`;
  if (kind === "hand-over") return `Hand the job over to DAG ${change.dag}`;
  if (kind === "delete") return `Delete the bookmark${also}`;
  return String(kind);
}

/** Say what a request is for that moves nothing, so that there is no preview of it. */
export function withoutPreview(change: Readonly<Record<string, unknown>>, job: string): string {
  if (change.kind === "share") return `DAG ${change.dag} will be allowed to run job ${job} too.`;
  if (change.kind === "hand-over" && change.renamed === true)
    return `Job ${job} will belong to DAG ${change.dag}, and no permission on the owner's old name will be required.`;
  if (change.kind === "hand-over")
    return `Job ${job} will belong to DAG ${change.dag}. Permission on its current owner will still be required, but that DAG's runs will be refused.`;
  return `Job ${job} can then be changed without approval.`;
}

/** Name an event: "rewind to run 4", "set flights to now". */
export function eventName(event: EventRow): string {
  if (event.kind === "rewind") return `rewind to run ${event.to_run ?? "?"}`;
  if (event.kind === "set")
    return `set ${event.ctx ?? "a context"} to ${timesInZone(event.value ?? "another position")}`;
  if (event.kind === "relocate") return `relocate ${event.ctx ?? "a context"}`;
  if (event.kind === "rename-context")
    return `rename the context ${event.ctx ?? ""} to ${event.name ?? "another name"}`;
  if (event.kind === "set-state") return `set job.state ${event.name ?? ""}`.trim();
  if (event.kind === "share") return `share with DAG ${event.dag ?? "unknown"}`;
  if (event.kind === "unshare") return `stop sharing with DAG ${event.dag ?? "unknown"}`;
  if (event.kind === "hand-over") return `hand over to DAG ${event.dag ?? "unknown"}`;
  if (event.kind === "request" && event.change) return `request: ${inSentence(requestName(event.change))}`;
  return event.kind;
}

/** Say run numbers, ascending, in ranges: "2, 5 to 7". Of very many the first ones. */
export function inRanges(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last !== undefined && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const shown = ranges.slice(0, MOST_RANGES).map(([low, high]) => {
    if (low === high) return `${low}`;
    return high === low + 1 ? `${low}, ${high}` : `${low} to ${high}`;
  });
  return shown.join(", ") + (ranges.length > MOST_RANGES ? ", ..." : "");
}

/** Say what would be read again. */
export function againInWords({
  files,
  bytes,
  rows,
  amounts,
}: Pick<ChangeSummary, "files" | "bytes" | "rows" | "amounts">): string {
  const others = amountsInWords(amounts);
  if (others !== undefined) return files ? `${count(files, "file")}, ${others}` : others;
  if (files === null && bytes === null && rows === null) return "unknown until the source is checked";
  if (files === 0 && bytes === 0 && !rows) return "nothing";
  const parts = [
    ...(files === null ? [] : [count(files, "file")]),
    ...(bytes === null ? [] : [inBytes(bytes)]),
    rows === null ? "rows not counted" : count(rows, "row"),
  ];
  return parts.join(", ");
}

/** Say which runs a change undoes. */
export function undoneInWords({ undone, undoneCount }: Pick<ChangeSummary, "undone" | "undoneCount">): string {
  if (undoneCount === 0) return "none";
  const more = undoneCount > undone.length ? ` and ${undoneCount - undone.length} more` : "";
  return `${count(undoneCount, "run")}: ${inRanges(undone)}${more}`;
}

/** The headline over `neverReadInWords`: how much a set skips for good. */
export function neverReadTitle(never: NeverRead): string {
  return `Never read: ${neverReadAmount(never) ?? "amount unknown"}`;
}

function neverReadAmount({ files, bytes, rows, amounts, unknown }: NeverRead): string | undefined {
  if (unknown !== null) return undefined;
  const parts = [
    files === null ? undefined : count(files, "file"),
    bytes === null ? undefined : inBytes(bytes),
    rows == null ? undefined : count(rows, "row"),
    amountsInWords(amounts),
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(", ");
}

/** Say what no run will ever read once a context is set, and who misses it. */
export function neverReadInWords(never: NeverRead): string {
  const { runs, consumers, unknown } = never;
  const known = neverReadAmount(never);
  const amount =
    known === undefined
      ? `Everything unread will be marked as read; the amount is unknown (${unknown ?? "no reason given"}).`
      : `What is unread up to there (${known}) will be marked as read.`;
  const upstream =
    runs.length === 0 ? "" : ` The data comes from upstream ${runs.length === 1 ? "run" : "runs"} ${inRanges(runs)}.`;
  const missed = consumers.length === 0 ? "" : ` Output made from it will never reach ${consumers.join(", ")}.`;
  return `${amount}${upstream} No run will ever read this data, so its rows are lost to this job.${missed}`;
}

/** Say what a clean removes; undefined where it removes nothing. */
export function removedInWords(files: number, sinks: number): string | undefined {
  const removed = files > 0 ? [count(files, "file")] : [];
  if (sinks > 0) removed.push(`rows of ${count(sinks, "output")} in other sinks`);
  return removed.length === 0 ? undefined : removed.join(" and ");
}

/** Say what runs that were undone before have left in their targets. */
function leftInWords({ leftOver, toClean, sinksToClean }: ChangeSummary): string {
  if (leftOver === null) return "unknown";
  const isCleaned = toClean > 0 || sinksToClean > 0;
  const fate = isCleaned ? "removed with the rest" : "removed by the next reset or rewind that removes output";
  return `${count(leftOver, "file")}; ${fate}`;
}

/** Say which jobs have read what a change undoes. */
export function consumersInWords({
  consumers,
  hiddenConsumers,
}: Pick<ChangeSummary, "consumers" | "hiddenConsumers">): string {
  const shown = Object.entries(consumers).map(([job, run]) => `${job} (has read up to run ${run})`);
  const hidden = hiddenConsumers === 0 ? [] : [`${count(hiddenConsumers, "job")} you don't have access to`];
  return [...shown, ...hidden].join(", ") || "none";
}

/** Say what a change would do, line by line; the watermarks are told apart. */
export function factsOf(summary: ChangeSummary): Fact[] {
  const unreadable = summary.unreadable.join(", ");
  const removed = removedInWords(summary.toClean, summary.sinksToClean);
  const isRead = summary.hiddenConsumers > 0 || Object.keys(summary.consumers).length > 0;
  return [
    { label: "Runs undone", says: undoneInWords(summary) },
    {
      label: "Last run kept",
      says: summary.toRun === 0 ? "none: back to before its first run" : `run ${summary.toRun}`,
    },
    { label: "Read again", says: againInWords(summary) },
    { label: "Consumers affected", says: consumersInWords(summary), ...(isRead ? { note: WENT_BACK } : {}) },
    ...(removed === undefined
      ? []
      : [{ label: "Removed", says: `${removed}, by the next run. This can't be undone.` }]),
    ...(summary.leftOver === 0 ? [] : [{ label: "Output left by earlier undone runs", says: leftInWords(summary) }]),
    ...(unreadable === "" ? [] : [{ label: "Can't be read", says: `${unreadable}; not counted above` }]),
  ];
}

/** Whether of no target it is known that it would hold rows twice. */
export function isUncertain(targets: readonly string[], unknown: readonly string[]): boolean {
  return targets.every((target) => unknown.includes(target));
}

/** The headline over `twiceInWords`. `unknown`: the targets of which it is not known. */
export function twiceTitle(targets: readonly string[], unknown: readonly string[]): string {
  return `This ${isUncertain(targets, unknown) ? "may" : "will"} duplicate rows`;
}

/** Say where the rows of a change would be twice, and why; of `unknown` targets, that this is not known. */
export function twiceInWords(targets: readonly string[], unknown: readonly string[]): string {
  const surely = targets.filter((target) => !unknown.includes(target));
  const there = surely.length === 1 ? "that output" : "those outputs";
  const words = [];
  if (surely.length > 0)
    words.push(
      `The next runs read the same input again and write its rows to ${someOf(surely)} again, while the rows already there stay. Readers of ${there} see duplicates.`,
    );
  if (unknown.length > 0)
    words.push(
      `Whether the undone runs published to ${someOf(unknown)} is unknown here: only the database can tell. If they did, their rows stay and the next runs write them again; if not, nothing is duplicated. To find out, use --dry-run on the command line.`,
    );
  return words.join(" ");
}

/** Name targets: of very many the first ones, as the preview of each job names its own. */
function someOf(targets: readonly string[]): string {
  const more = targets.length - MOST_TARGETS;
  return more > 0 ? `${targets.slice(0, MOST_TARGETS).join(", ")} and ${more} more` : targets.join(", ");
}

/** What can be done so that an output does not get the same rows twice. */
export type Fix = "clean" | "command line" | "all contexts" | "ask anew" | "by hand";

/** `mayLook`: whether the page may look at files, as every clean has to. */
export function fixOf(spec: ChangeSpec | undefined, mayLook: boolean): Fix {
  if (spec?.kind !== "reset" && spec?.kind !== "rewind" && spec?.kind !== "delete") return "by hand";
  if (!mayLook) return "command line";
  if (spec.kind === "delete") return "clean";
  return spec.contexts == null ? "clean" : "all contexts";
}

export function fixOfRequest({ kind, contexts }: Readonly<Record<string, unknown>>): Fix {
  const undoesRuns = kind === "reset" || kind === "rewind" || kind === "delete";
  return undoesRuns && contexts === undefined ? "ask anew" : "by hand";
}
