import { chakra } from "@chakra-ui/react";
import { GRID, INK } from "../../parts/ink";
import { ChartMark } from "./ChartMark";
import type { Drawing, Frame } from "./draw";
import { MARKS, markOf } from "./marks";
import type { ChartPoint } from "./points";

export const PICTURE = 150;
export const LEFT = 62;
export const RIGHT = 10;
export const FOOT = 24;
const TOP = 12; // as high as the marks of changes are
const LINE = MARKS.run.palette;

interface ChartPictureProps {
  drawing: Drawing;
  points: readonly ChartPoint[];
  frame: Frame;
  /** The point that the readout tells of. */
  at: number;
  label: string;
  say: (value: number) => string;
}

/** The line of a chart with its marks; what it says is also in the readout, in the text below and in the table. */
export function ChartPicture({ drawing, points, frame, at, label, say }: ChartPictureProps) {
  const { width, height } = frame;
  if (width === 0) return <svg width="100%" height={PICTURE + TOP} role="img" aria-label={label} />;
  return (
    <svg width={width + LEFT + RIGHT} height={PICTURE + TOP} role="img" aria-label={label} style={{ display: "block" }}>
      <g transform={`translate(${LEFT}, ${TOP})`}>
        {drawing.ticks.map((tick) => (
          <g key={tick.value} transform={`translate(0, ${tick.y})`}>
            <chakra.line x2={width} stroke={GRID} strokeDasharray={tick.value === 0 ? undefined : "1 4"} data-grid />
            <chakra.text x={-8} dy="0.32em" textAnchor="end" fontSize="11px" fill="fg.muted">
              {tick.value === 0 ? "0" : say(tick.value)}
            </chakra.text>
          </g>
        ))}
        <chakra.path d={drawing.area} colorPalette={LINE} fill="colorPalette.muted" opacity={0.5} />
        <Changes drawing={drawing} height={height} />
        <g fill="none" strokeWidth={2} strokeLinejoin="round">
          <chakra.path
            d={drawing.median}
            colorPalette={MARKS.usual.palette}
            stroke={INK}
            strokeWidth={1.5}
            strokeDasharray="4 3"
          />
          <chakra.path d={drawing.line} colorPalette={LINE} stroke={INK} />
        </g>
        <Points drawing={drawing} points={points} height={height} at={at} />
        <Foot drawing={drawing} frame={frame} />
      </g>
    </svg>
  );
}

function Foot({ drawing, frame }: { drawing: Drawing; frame: Frame }) {
  return drawing.foot.map(({ x, label }, index) => (
    <chakra.text
      // biome-ignore lint/suspicious/noArrayIndexKey: of one run alone the two ends are the same
      key={`${label} ${index}`}
      x={x}
      y={frame.height + 19}
      fontSize="11px"
      fill="fg.muted"
      textAnchor={x < 20 ? "start" : x > frame.width - 30 ? "end" : "middle"}
    >
      {label}
    </chakra.text>
  ));
}

function Changes({ drawing, height }: { drawing: Drawing; height: number }) {
  return drawing.changes.map(({ x, change }) => (
    <g key={change.key}>
      <chakra.line x1={x} x2={x} y2={height} colorPalette={MARKS.change.palette} stroke={INK} strokeDasharray="6 3" />
      <ChartMark mark="change" x={x} y={-5} />
    </g>
  ));
}

interface PointsProps extends Pick<ChartPictureProps, "drawing" | "points" | "at"> {
  height: number;
}

function Points({ drawing, points, height, at }: PointsProps) {
  const picked = drawing.dots[at];
  return (
    <>
      {picked && <chakra.line x1={picked.x} x2={picked.x} y2={height} stroke={GRID} strokeDasharray="3 3" />}
      {points.map((point, index) => {
        const dot = drawing.dots[index];
        const mark = markOf(point);
        // A run that failed has no value: it is marked on the ground.
        const y = dot?.y ?? (mark === "failed" ? height : undefined);
        if (dot === undefined || y === undefined) return null;
        return <ChartMark key={point.key} mark={mark} x={dot.x} y={y} isPicked={index === at} />;
      })}
    </>
  );
}
