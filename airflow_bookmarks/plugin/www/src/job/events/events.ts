import type { EventRow } from "../../api/model";
import { timesInZone } from "../../words/time";

/** One watermark before and after a change; null is before the first run. */
export interface Move {
  ctx: string;
  before: string | null;
  after: string | null;
}

const PLAIN: Record<string, string> = {
  protect: "Protected",
  unprotect: "No longer protected",
  adopt: "Adopted",
  repair: "Repaired by the doctor",
  import: "Imported",
};

/** Say what an event did: "Rewound to run 4". What it has no words for, it names. */
export function eventWords(event: EventRow): string {
  switch (event.kind) {
    case "reset":
      return "Reset to before its first run";
    case "delete":
      return "Deleted";
    case "rewind":
      return event.to_run ? `Rewound to run ${event.to_run}` : "Rewound to before its first run";
    case "set":
      return event.ctx
        ? `Set ${event.ctx} to ${timesInZone(event.value ?? "another position")}`
        : "Set to another position";
    case "undo":
      return event.to_run ? `Undid the last change: back to run ${event.to_run}` : "Undid the last change";
    case "replay":
      return event.run ? `Replayed run ${numberOf(event.run)}` : "Replayed";
    case "settle":
      return `Run ${event.run ? numberOf(event.run) : "?"}, partly published, settled as ${event.value ?? "unknown"}`;
    case "unlock":
      return event.held_by ? `Unlocked (was held by ${event.held_by})` : "Unlocked";
    case "request":
      return `Requested: ${changeWords(event.change)}`;
    case "approve":
      return "Approved a request";
    case "reject":
      return "Rejected a request";
    case "rename":
      return event.name ? `Renamed to ${event.name}` : "Renamed";
    case "share":
      return `Shared with DAG ${event.dag ?? "unknown"}`;
    case "unshare":
      return `No longer shared with DAG ${event.dag ?? "unknown"}`;
    case "hand-over":
      return handedOver(event);
    default:
      return PLAIN[event.kind] ?? event.kind;
  }
}

const KNOWN: Record<string, string> = {
  airflow: "logged in",
  aws: "AWS identity",
  os: "OS user",
  task: "a task",
  told: "reported by a program",
};

/** Say how the name of who made a change is known; of two people, of both. */
export function knownBy({ who_kind }: Pick<EventRow, "who_kind">): string {
  if (!who_kind) return "source unknown";
  return who_kind
    .split(", ")
    .map((kind) => KNOWN[kind] ?? kind)
    .join(", ");
}

function handedOver({ dag, owner_before, renamed }: EventRow): string {
  if (renamed) return `Owner renamed from DAG ${owner_before ?? "unknown"} to ${dag ?? "unknown"}`;
  const from = owner_before ? ` from DAG ${owner_before}` : "";
  return `Handed over${from} to DAG ${dag ?? "unknown"}`;
}

/** Say a change that was requested: "rewind to run 4, with clean". */
export function changeWords(change: EventRow["change"]): string {
  if (!change) return "a change";
  const said = [typeof change.kind === "string" ? change.kind : "change"];
  if (isText(change.ctx)) said.push(`${change.ctx}`);
  if (isText(change.dag)) said.push(change.kind === "share" ? `with DAG ${change.dag}` : `to DAG ${change.dag}`);
  const target = change.to_run ?? change.value;
  if (isText(target)) said.push(change.kind === "rewind" ? `to run ${target}` : `to ${timesInZone(`${target}`)}`);
  if (Array.isArray(change.contexts)) said.push(`(${change.contexts.join(", ")} only)`);
  return said.join(" ") + (change.clean === true ? ", with clean" : "");
}

/** Return the watermarks that a change moved, by context; those that stayed are left out. */
export function movesOf(event: EventRow): Move[] {
  const before = event.watermarks_before ?? {};
  const after = event.watermarks_after ?? {};
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .sort()
    .map((ctx) => ({ ctx, before: before[ctx] ?? null, after: after[ctx] ?? null }))
    .filter((move) => move.before !== move.after);
}

/** Say the epoch of an event, and from which it came where that is another one: "1 to 2". */
export function epochWords({ epoch_before, epoch_after }: Pick<EventRow, "epoch_before" | "epoch_after">): string {
  const epochs = new Set([epoch_before, epoch_after].filter((epoch) => epoch != null));
  return [...epochs].join(" to ");
}

// A run is named by number and fence, of which people know the number.
function numberOf(run: string): string {
  return run.split(".")[0] ?? run;
}

function isText(value: unknown): value is string | number {
  return (typeof value === "string" && value !== "") || typeof value === "number";
}
