import { scaleLinear, scaleTime } from "d3-scale";
import { area, curveStepBefore, line } from "d3-shape";
import { timeOf } from "../../words/time";
import { timeLabel } from "../runs/timeline";
import type { Measure } from "./measures";
import type { ChangeMark, ChartPoint } from "./points";

/** The size of what is drawn in, in pixels. */
export interface Frame {
  width: number;
  height: number;
}

/** A mark at the axis below. */
export interface FootMark {
  x: number;
  label: string;
}

/** A chart ready to be drawn. A point without a value has no y. The line and the median are of the runs that count now. */
export interface Drawing {
  line: string;
  area: string;
  median: string;
  dots: { x: number; y: number | undefined }[];
  ticks: { y: number; value: number }[];
  changes: { x: number; change: ChangeMark }[];
  foot: FootMark[];
}

type Axes = Pick<Measure, "isTime" | "isByTime">;

const MARKS_OF_TIME = [1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800];
const TIME_MARK_ROOM = 90;

/** Lay out points, oldest first, within a frame, from zero up. */
export function draw(
  points: readonly ChartPoint[],
  frame: Frame,
  { isTime = false, isByTime = false }: Axes = {},
  changes: readonly ChangeMark[] = [],
): Drawing {
  const most = Math.max(0, ...points.flatMap((point) => [point.value ?? 0, point.verdict?.usual ?? 0]));
  const y = scaleLinear([0, most || 1], [frame.height, 0]);
  if (!isTime) y.nice(3);
  const across = isByTime ? overTime(points, frame.width) : inSteps(points, frame.width);
  const dots = points.map((point, index) => ({
    x: across.of(index),
    y: point.value === null ? undefined : y(point.value),
  }));
  const living = dots.filter((_, index) => points[index]?.fate === "living");
  const usual = points.flatMap(({ verdict }, index) =>
    verdict === null ? [] : [{ x: across.of(index), y: y(verdict.usual) }],
  );
  return {
    line: line<Place>(xOf, yOf).defined(isKnown)(living) ?? "",
    area: area<Place>(xOf, frame.height, yOf).defined(isKnown)(living) ?? "",
    median: line<Place>(xOf, yOf).curve(curveStepBefore)(usual) ?? "",
    dots,
    ticks: ticksOf(y, most, isTime).map((value) => ({ y: y(value), value })),
    changes: changes.flatMap((change) => {
      const x = across.at(change.at);
      return x === undefined ? [] : [{ x, change }];
    }),
    foot: across.foot,
  };
}

interface Place {
  x: number;
  y: number | undefined;
}

const xOf = (place: Place) => place.x;
const yOf = (place: Place) => place.y ?? 0;
const isKnown = (place: Place) => place.y !== undefined;

/** Where runs stand, and where a time lies: undefined for one before the first run, which older runs may precede. */
interface Across {
  of: (index: number) => number;
  at: (time: Date) => number | undefined;
  foot: FootMark[];
}

// Runs stand in equal steps, as in the list: their times may be minutes or weeks apart.
function inSteps(points: readonly ChartPoint[], width: number): Across {
  const step = width / Math.max(1, points.length - 1);
  const of = (index: number) => (points.length === 1 ? width / 2 : index * step);
  const last = points.length - 1;
  return {
    of,
    at: (time) => {
      const before = points.filter(
        (point) => (timeOf(point.at)?.getTime() ?? Number.POSITIVE_INFINITY) <= time.getTime(),
      );
      if (before.length === 0) return undefined;
      return Math.min(width, of(before.length - 1) + (points.length === 1 ? width / 4 : step / 2));
    },
    foot:
      points.length === 0 ? [] : [0, last].map((index) => ({ x: of(index), label: `run ${points[index]?.number}` })),
  };
}

function overTime(points: readonly ChartPoint[], width: number): Across {
  const times = points.map((point) => timeOf(point.at)?.getTime() ?? 0);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const scale = scaleTime([first, last], [0, width]);
  const place = (time: number) => (first === last ? width / 2 : scale(time));
  const ticks = first === last ? [] : scale.ticks(Math.max(1, Math.floor(width / TIME_MARK_ROOM)));
  return {
    of: (index) => place(times[index] ?? first),
    at: (time) => (time.getTime() < first ? undefined : Math.min(width, place(time.getTime()))),
    foot: ticks.map((tick) => ({ x: scale(tick), label: timeLabel(tick, last - first) })),
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
