import { scaleLinear, scaleUtc } from "d3-scale";
import type { RunRow } from "../../api/model";
import { markWords } from "../../words/mark";
import { inFull } from "../../words/number";
import { duration, withoutZone } from "../../words/time";
import { currentZone, momentOf, wallTime } from "../../words/zone";
import { type Look, lookOf } from "./looks";
import { isLiving, keyOf, remarks, secondsOf } from "./run";

/**
 * What the watermarks of a context are by their stored order: times, times without a zone, numbers (runs of an upstream,
 * a sequence of files), what has no measure (text, paths, offsets), or "unknown" where no order is stored.
 */
export type AxisKind = "time" | "local_time" | "number" | "order" | "unknown";

/** Where watermarks lie between 0 and 1, and what stands at the axis. */
export interface Axis {
  kind: AxisKind;
  at: (watermark: string) => number;
  ticks: { at: number; label: string }[];
}

/** One run of the timeline. `from` and `to` are between 0 and 1; undefined: that end is open. */
export interface Bar {
  key: string;
  run: RunRow;
  look: Look;
  from: number | undefined;
  to: number | undefined;
  isEmpty: boolean;
  remarks: string[];
  seconds: number | undefined;
  /** The duration as a part of the longest one. */
  share: number;
  said: string;
}

const TICKS = 5;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Return the axis on which the windows of a context lie; undefined where no run has a watermark there. */
export function axisOf(runs: readonly RunRow[], ctx: string, zone = currentZone()): Axis | undefined {
  const marks = [...runs]
    .reverse()
    .flatMap((run) => [run.window[ctx]?.before, run.window[ctx]?.after])
    .filter((mark) => mark != null);
  if (marks.length === 0) return undefined;
  const orders = new Set(runs.map((run) => run.order[ctx]).filter((order) => order != null));
  if (orders.size === 0) return orderAxis(marks, "unknown");
  const [order] = orders;
  // A column whose type changed has watermarks of two orders, which have no measure in common.
  if (orders.size > 1 || order === undefined || !isMeasured(order)) return orderAxis(marks, "order");
  if (!marks.every((mark) => Number.isFinite(MEASURES[order](mark)))) return orderAxis(marks, "order");
  return order === "number" ? numberAxis(marks) : timeAxis(marks, order, zone);
}

type Measured = "time" | "local_time" | "number";

// What a watermark measures by its order: milliseconds, or the number itself.
const MEASURES: Record<Measured, (mark: string) => number> = {
  time: (mark) => Date.parse(mark),
  local_time: (mark) => Date.parse(mark.includes("T") ? `${mark}Z` : mark),
  number: (mark) => (/^-?\d+(\.\d+)?$/.test(mark) ? Number(mark) : Number.NaN),
};

function isMeasured(order: string): order is Measured {
  return Object.hasOwn(MEASURES, order);
}

// A time without a zone is measured as if it were UTC, and said as it is. Marks stand where the clocks of the zone read
// round times: at its midnights, not at those of UTC.
function timeAxis(marks: readonly string[], kind: "time" | "local_time", zone: string): Axis {
  const measure = MEASURES[kind];
  const [low, high] = extent(marks.map(measure), 1000);
  const place = scaleLinear([low, high], [0, 1]);
  const toWall = (at: Date) => (kind === "local_time" ? at : wallTime(at, zone));
  const toMoment = (wall: Date) => (kind === "local_time" ? wall : momentOf(wall, zone));
  const walls = scaleUtc([toWall(new Date(low)), toWall(new Date(high))], [0, 1]).ticks(TICKS);
  const ticks = walls.flatMap((wall) => {
    const at = toMoment(wall);
    return at === undefined ? [] : [{ at: place(at.getTime()), label: timeLabel(wall, high - low) }];
  });
  return { kind, at: (mark) => place(measure(mark)), ticks: eachOnce(ticks) };
}

// Marks within one day may all say that day.
function eachOnce(ticks: Axis["ticks"]): Axis["ticks"] {
  return ticks.filter(({ label }, index) => index === 0 || ticks[index - 1]?.label !== label);
}

/** Say a mark of a time axis that spans so many milliseconds: the day, or the time of day where days are too coarse. */
export function timeLabel(wall: Date, span: number): string {
  const [day = "", time = ""] = withoutZone(wall).split(" ");
  if (span > 3 * DAY_MS) return day;
  if (time === "00:00:00") return day;
  return span > 10 * MINUTE_MS ? time.slice(0, 5) : time;
}

function numberAxis(marks: readonly string[]): Axis {
  const numbers = marks.map(Number);
  const scale = scaleLinear(extent(numbers, 1), [0, 1]);
  const isWhole = numbers.every(Number.isInteger);
  const ticks = scale.ticks(TICKS).filter((tick) => !isWhole || Number.isInteger(tick));
  const say = isWhole ? inFull : scale.tickFormat(TICKS);
  return {
    kind: "number",
    at: (mark) => scale(Number(mark)),
    ticks: ticks.map((tick) => ({ at: scale(tick), label: say(tick) })),
  };
}

// Text, keys of several columns and offsets can't be measured, but runs read them in their order.
function orderAxis(marks: readonly string[], kind: "order" | "unknown"): Axis {
  const ranks = new Map<string, number>();
  for (const mark of marks) if (!ranks.has(mark)) ranks.set(mark, ranks.size);
  const last = Math.max(1, ranks.size - 1);
  return { kind, at: (mark) => (ranks.get(mark) ?? 0) / last, ticks: [] };
}

// One mark alone lies in the middle.
function extent(values: readonly number[], around: number): [number, number] {
  const low = values.reduce((least, value) => Math.min(least, value));
  const high = values.reduce((most, value) => Math.max(most, value));
  const margin = Math.max(around, Math.abs(low) * 1e-9); // one beside 10^18 is that number still
  return low === high ? [low - margin, high + margin] : [low, high];
}

/** Return the rows of the timeline, in the order of the runs. */
export function barsOf(runs: readonly RunRow[], ctx: string, axis: Axis | undefined): Bar[] {
  const longest = Math.max(0, ...runs.map((run) => secondsOf(run) ?? 0));
  return runs.map((run, index) => {
    const seconds = secondsOf(run);
    return {
      key: keyOf(run),
      run,
      look: lookOf(run.state),
      ...ends(run, ctx, axis, runs.slice(index + 1)),
      isEmpty: run.is_empty === true,
      remarks: remarks(run),
      seconds,
      share: seconds === undefined || longest === 0 ? 0 : seconds / longest,
      said: sentence(run, ctx),
    };
  });
}

function ends(run: RunRow, ctx: string, axis: Axis | undefined, older: readonly RunRow[]): Pick<Bar, "from" | "to"> {
  const { before, after } = run.window[ctx] ?? { before: beganAt(run, ctx, older), after: null };
  const at = (mark: string | null | undefined) => (axis === undefined || mark == null ? undefined : axis.at(mark));
  return { from: at(before), to: at(after) };
}

// What a run that did not commit was to read is not kept; it began where the run before it had ended. One that was undone
// is such a run only for runs of its own epoch: later ones began before it.
function beganAt(run: RunRow, ctx: string, older: readonly RunRow[]): string | null | undefined {
  if (isCommitted(run)) return undefined;
  const counts = (each: RunRow) => isLiving(each) || (each.state === "UNDONE" && each.epoch === run.epoch);
  return older.find((each) => counts(each) && each.window[ctx])?.window[ctx]?.after;
}

function isCommitted(run: RunRow): boolean {
  return isLiving(run) || run.state === "UNDONE";
}

/** Say a run in one sentence, for whoever can't see its bar. */
export function sentence(run: RunRow, ctx: string): string {
  const said = [`Run ${run.number}: ${run.state.toLowerCase()}`, ...remarks(run), windowWords(run, ctx)];
  const seconds = secondsOf(run);
  if (seconds !== undefined) said.push(`took ${duration(seconds)}`);
  if (run.committed_at) said.push(`committed ${markWords(run.committed_at, "time")}`);
  return `${said.join(", ")}.`;
}

function windowWords(run: RunRow, ctx: string): string {
  const window = run.window[ctx];
  if (window === undefined) return `read nothing from ${ctx}`;
  const order = run.order[ctx];
  const from = window.before === null ? "the beginning" : markWords(window.before, order);
  return window.after === null ? `from ${from}` : `from ${from} to ${markWords(window.after, order)}`;
}

/** Return where the newest run that has a window ends, between 0 and 1: what one comes to look at. */
export function newestEnd(bars: readonly Pick<Bar, "from" | "to">[]): number {
  const newest = bars.find((bar) => bar.from !== undefined || bar.to !== undefined);
  return newest?.to ?? newest?.from ?? 0;
}

/** Return the row that a key of the keyboard leads to; undefined for a key that leads nowhere. */
export function rowAfter(key: string, row: number, rows: number): number | undefined {
  const last = rows - 1;
  if (key === "ArrowDown") return Math.min(last, row + 1);
  if (key === "ArrowUp") return Math.max(0, row - 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return undefined;
}
