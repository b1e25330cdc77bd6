import type { EventRow } from "../api/model";

const UNDOABLE: ReadonlySet<string> = new Set(["reset", "rewind", "set", "delete", "undo"]);

/** Return the change that an undo takes back, of events that are newest first; undefined where none of them is one. */
export function newestChange(events: readonly EventRow[]): EventRow | undefined {
  return events.find(({ kind }) => UNDOABLE.has(kind));
}
