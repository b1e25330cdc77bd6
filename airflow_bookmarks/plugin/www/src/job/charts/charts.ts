import { scaleLinear } from "d3-scale";
import { area, line } from "d3-shape";
import type { RunRow } from "../../api/model";
import { inBytes, inFull, inShort } from "../../words/number";
import { duration, timeOf } from "../../words/time";
import { isLiving, keyOf } from "../runs/run";

/** A run in a chart; a value that is not known is null, and leaves a gap. */
export interface ChartPoint {
  key: string;
  number: number;
  at: string | null;
  value: number | null;
}

/** What a chart shows of each run. `say` says a value. */
export interface Measure {
  id: string;
  title: string;
  hint: string;
  value: (run: RunRow) => number | null;
  say: (value: number) => string;
  /** Says a value at the axis, where there is less room; `say` without it. */
  tick?: (value: number) => string;
  isTime?: boolean;
}

const COUNT = { say: inFull, tick: inShort };

type Amounts = Pick<RunRow, "files" | "bytes" | "rows" | "amounts">;

const ROWS: Measure = {
  id: "rows",
  title: "Rows read",
  hint: "counted by the run, or by its plan",
  value: (run) => run.rows ?? run.amounts.rows ?? null,
  ...COUNT,
};
const OF_FILES: Measure[] = [
  { id: "bytes", title: "Bytes read", hint: "size of the files", value: (run) => run.bytes ?? null, say: inBytes },
  { id: "files", title: "Files read", hint: "in all contexts", value: (run) => run.files ?? null, ...COUNT },
];

/** Return what is charted of runs: in what their sources count, and of one context how far it is behind. */
export function measuresOf(ctx: string | undefined, runs: readonly Amounts[]): Measure[] {
  const units = new Set(runs.flatMap((run) => Object.keys(run.amounts)));
  const hasFiles = units.size === 0 || runs.some((run) => run.files != null || run.bytes != null);
  const others = [...units].filter((unit) => unit !== ROWS.id).map(measureOf);
  const measures = [ROWS, ...(hasFiles ? OF_FILES : []), ...others];
  if (ctx === undefined) return measures;
  const hint = `how old the newest data of ${ctx} was when the run committed`;
  const lag: Measure = { id: "lag", title: "Lag", hint, value: (run) => lagOf(run, ctx), say: duration, isTime: true };
  return [...measures, lag];
}

function measureOf(unit: string): Measure {
  const title = `${unit.charAt(0).toUpperCase()}${unit.slice(1)} read`;
  return { id: `unit-${unit}`, title, hint: "in all contexts", value: (run) => run.amounts[unit] ?? null, ...COUNT };
}

/** Return how old the newest data of a context was when a run committed, in seconds; null where that is not known to be a time. */
export function lagOf(run: Pick<RunRow, "committed_at" | "order" | "window">, ctx: string): number | null {
  const committed = timeOf(run.committed_at);
  const newest = run.order[ctx] === "time" ? timeOf(run.window[ctx]?.after) : undefined;
  if (committed === undefined || newest === undefined) return null;
  return Math.max(0, (committed.getTime() - newest.getTime()) / 1000);
}

/** Return what to chart, oldest left: the runs that count now. */
export function pointsOf(runs: readonly RunRow[], measure: Measure): ChartPoint[] {
  return runs
    .filter(isLiving)
    .map((run) => ({ key: keyOf(run), number: run.number, at: run.committed_at ?? null, value: measure.value(run) }))
    .reverse();
}

/** The size of what is drawn in, in pixels. */
export interface Frame {
  width: number;
  height: number;
}

/** A chart ready to be drawn. A point without a value has no y. */
export interface Drawing {
  line: string;
  area: string;
  dots: { x: number; y: number | undefined }[];
  ticks: { y: number; value: number }[];
}

const MARKS_OF_TIME = [1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800];

/** Lay out points within a frame, from zero up. */
export function draw(points: readonly ChartPoint[], frame: Frame, isTime = false): Drawing {
  const most = Math.max(0, ...points.map((point) => point.value ?? 0));
  const y = scaleLinear([0, most || 1], [frame.height, 0]);
  if (!isTime) y.nice(3);
  // Runs stand in equal steps, as in the list: their times may be minutes or weeks apart.
  const x = scaleLinear([0, Math.max(1, points.length - 1)], [0, frame.width]);
  const middle = frame.width / 2;
  const across = (_: ChartPoint, index: number) => (points.length === 1 ? middle : x(index));
  const isKnown = (point: ChartPoint) => point.value !== null;
  const up = (point: ChartPoint) => y(point.value ?? 0);
  return {
    line: line<ChartPoint>(across, up).defined(isKnown)(points) ?? "",
    area: area<ChartPoint>(across, frame.height, up).defined(isKnown)(points) ?? "",
    dots: points.map((point, index) => ({ x: across(point, index), y: isKnown(point) ? up(point) : undefined })),
    ticks: ticksOf(y, most, isTime).map((value) => ({ y: y(value), value })),
  };
}

// A scale of tens puts marks at 5,000 seconds, which nobody reads: hours and days are what people count in.
function ticksOf(y: { ticks: (count: number) => number[] }, most: number, isTime: boolean): number[] {
  if (!isTime) return y.ticks(3);
  const step = MARKS_OF_TIME.filter((mark) => mark <= most / 2).at(-1) ?? most;
  const steps = Math.ceil(Math.floor(most / step) / 3) || 1;
  const found: number[] = [];
  for (let at = 0; at <= most && step > 0; at += steps * step) found.push(at);
  return found.length > 0 ? found : [0];
}

/** Return the point that a key of the keyboard leads to; undefined for a key that leads nowhere. */
export function pointAfter(key: string, point: number, points: number): number | undefined {
  const last = points - 1;
  if (key === "ArrowRight" || key === "ArrowUp") return Math.min(last, point + 1);
  if (key === "ArrowLeft" || key === "ArrowDown") return Math.max(0, point - 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  return undefined;
}

/** Return the point nearest to a place across the chart. */
export function nearest(dots: readonly { x: number }[], x: number): number {
  const distances = dots.map((dot) => Math.abs(dot.x - x));
  return distances.indexOf(Math.min(...distances));
}
