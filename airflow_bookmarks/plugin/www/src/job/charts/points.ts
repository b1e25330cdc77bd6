import type { EventRow, RunRow } from "../../api/model";
import { inZone, timeOf } from "../../words/time";
import { eventWords } from "../events/events";
import { isLiving, keyOf } from "../runs/run";
import type { Measure } from "./measures";
import { judge, type Verdict } from "./unusual";

/** What became of a run, as far as charts tell it apart. */
export type Fate = "living" | "failed" | "undone";

/** A run in a chart; a value that is not known is null, and leaves a gap. */
export interface ChartPoint {
  key: string;
  number: number;
  /** When it committed, else when it began. */
  at: string | null;
  value: number | null;
  fate: Fate;
  /** How it compares with the runs before; null: that can't be told. */
  verdict: Verdict | null;
}

/** A change by a person: the runs after it go on from elsewhere. */
export interface ChangeMark {
  key: string;
  at: Date;
  said: string;
}

const FATES: Record<string, Fate> = {
  COMMITTED: "living",
  PUBLISHED: "living",
  UNDONE: "undone",
  FAILED: "failed",
  ABANDONED: "failed",
};
// The events that move a bookmark; the others concern people and names.
const MOVES: ReadonlySet<string> = new Set([
  "reset",
  "rewind",
  "set",
  "undo",
  "delete",
  "relocate",
  "import",
  "repair",
]);

/** Return what to chart, oldest left: all runs that have ended. Those that count now are compared with each other. */
export function pointsOf(runs: readonly RunRow[], measure: Measure): ChartPoint[] {
  const ended = runs.filter((run) => run.state in FATES && !(measure.isByTime && timeOf(endOf(run)) === undefined));
  const points = ended.map((run) => pointOf(run, measure)).reverse();
  // An empty run reads nothing, and takes next to no time, which is neither usual nor unusual; what it waits for grows old.
  const isOf = (run: RunRow) => isLiving(run) && (measure.hasEmpty === true || run.is_empty !== true);
  const isCompared = new Set(ended.filter(isOf).map(keyOf));
  const verdicts = judge(
    points.map((point) => (isCompared.has(point.key) ? point.value : null)),
    measure.least,
  );
  return points.map((point, index) => ({ ...point, verdict: verdicts[index] ?? null }));
}

function pointOf(run: RunRow, measure: Measure): ChartPoint {
  const fate = FATES[run.state] ?? "failed";
  // What a run had read when it failed is none of its figures.
  const value = fate === "failed" ? null : measure.value(run);
  return { key: keyOf(run), number: run.number, at: endOf(run), value, fate, verdict: null };
}

function endOf(run: Pick<RunRow, "committed_at" | "planned_at">): string | null {
  return run.committed_at ?? run.planned_at ?? null;
}

/** Return the changes that moved a bookmark, oldest first. */
export function changesOf(events: readonly EventRow[]): ChangeMark[] {
  return events
    .filter((event) => MOVES.has(event.kind))
    .flatMap((event) => {
      const at = timeOf(event.at);
      return at === undefined ? [] : [{ key: `${event.at} ${event.kind}`, at, said: eventWords(event) }];
    })
    .sort((one, other) => one.at.getTime() - other.at.getTime());
}

/** Say a change with its time. */
export function changeInWords({ at, said }: ChangeMark): string {
  return `${said} (${inZone(at)})`;
}
