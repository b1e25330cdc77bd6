import { chakra } from "@chakra-ui/react";
import { GRID } from "../../parts/ink";
import { BarShape } from "./BarShape";
import type { Look } from "./looks";
import type { Axis, Bar } from "./timeline";

export const PAD = 16;
const HEIGHT = 32;
const THICK = 14;
const TOP = (HEIGHT - THICK) / 2;
const OPEN = 22;
const THIN = 3;
// What began and did not commit; the others read nothing of this context.
const STARTED: ReadonlySet<Look> = new Set<Look>(["planned", "failed", "abandoned"]);

/** Return where a place between 0 and 1 lies across a picture, in pixels. */
export function place(at: number, width: number): number {
  return PAD + at * Math.max(0, width - 2 * PAD);
}

/** The window that a run read: a bar, a tick for an empty run, an arrow where an end is open. */
export function TimelineBar({ bar, axis, width }: { bar: Bar; axis: Axis | undefined; width: number }) {
  if (width < 2 * PAD) return null;
  return (
    <svg width={width} height={HEIGHT} aria-hidden style={{ display: "block" }}>
      {axis?.ticks.map((tick) => {
        const x = place(tick.at, width);
        return <chakra.line key={tick.label + tick.at} x1={x} x2={x} y2={HEIGHT} stroke={GRID} strokeDasharray="1 3" />;
      })}
      <Shape bar={bar} width={width} />
    </svg>
  );
}

function Shape({ bar, width }: { bar: Bar; width: number }) {
  const from = bar.from === undefined ? undefined : place(bar.from, width);
  const to = bar.to === undefined ? undefined : place(bar.to, width);
  if (bar.isEmpty) {
    return <BarShape look={bar.look} x={(to ?? from ?? PAD) - 1} y={TOP - 2} width={2} height={THICK + 4} />;
  }
  if (from !== undefined && to !== undefined) {
    const left = Math.min(from, to);
    return <BarShape look={bar.look} x={left} y={TOP} width={Math.max(THIN, Math.abs(to - from))} height={THICK} />;
  }
  if (to !== undefined) return <Open bar={bar} x={0} width={Math.max(THIN, to)} />;
  if (from === undefined && !STARTED.has(bar.look)) return null;
  // Without a commit nobody knows how far it would have come: it points on.
  if (from !== undefined) return <Open bar={bar} x={Math.min(from, width - OPEN)} width={OPEN} isOn />;
  return <Open bar={bar} x={0} width={OPEN} isOn />;
}

/** A bar with one open end: there it ends like a ribbon. */
function Open({ bar, x, width, isOn = false }: { bar: Bar; x: number; width: number; isOn?: boolean }) {
  const end = isOn ? x + width + 1 : x - 1;
  const notch = Math.min(8, width) * (isOn ? -1 : 1);
  const half = THICK / 2 + 1;
  return (
    <g>
      <BarShape look={bar.look} x={x} y={TOP} width={width} height={THICK} />
      <chakra.path d={`M${end} ${TOP - 1} l${notch} ${half} l${-notch} ${half} Z`} fill="bg" />
    </g>
  );
}
