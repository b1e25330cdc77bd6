import { chakra } from "@chakra-ui/react";
import type { Drawing, Frame } from "./charts";

export const PICTURE = 150;
export const LEFT = 62;
export const RIGHT = 10;
export const FOOT = 24;
const TOP = 6;

interface ChartPictureProps {
  drawing: Drawing;
  frame: Frame;
  /** The point that the readout tells of. */
  at: number;
  /** The numbers of the first and the last run. */
  ends: readonly [number | undefined, number | undefined];
  label: string;
  say: (value: number) => string;
}

/** The line of a chart with its marks; what it says is also in the readout and in the table. */
export function ChartPicture({ drawing, frame, at, ends, label, say }: ChartPictureProps) {
  const { width, height } = frame;
  if (width === 0) return <svg width="100%" height={PICTURE + TOP} role="img" aria-label={label} />;
  const [first, last] = ends;
  return (
    <svg width={width + LEFT + RIGHT} height={PICTURE + TOP} role="img" aria-label={label} style={{ display: "block" }}>
      <g transform={`translate(${LEFT}, ${TOP})`}>
        {drawing.ticks.map((tick) => (
          <g key={tick.value} transform={`translate(0, ${tick.y})`}>
            <chakra.line x2={width} stroke="border.muted" />
            <chakra.text x={-8} dy="0.32em" textAnchor="end" fontSize="11px" fill="fg.muted">
              {tick.value === 0 ? "0" : say(tick.value)}
            </chakra.text>
          </g>
        ))}
        <chakra.path d={drawing.area} fill="blue.muted" opacity={0.5} />
        <chakra.path d={drawing.line} fill="none" stroke="blue.solid" strokeWidth={2} strokeLinejoin="round" />
        <Dots drawing={drawing} height={height} at={at} />
        <chakra.text y={height + 17} fontSize="11px" fill="fg.muted">
          run {first}
        </chakra.text>
        {last !== first && (
          <chakra.text x={width} y={height + 17} fontSize="11px" fill="fg.muted" textAnchor="end">
            run {last}
          </chakra.text>
        )}
      </g>
    </svg>
  );
}

function Dots({ drawing, height, at }: { drawing: Drawing; height: number; at: number }) {
  const picked = drawing.dots[at];
  return (
    <>
      {picked && (
        <chakra.line x1={picked.x} x2={picked.x} y2={height} stroke="border.emphasized" strokeDasharray="3 3" />
      )}
      {drawing.dots.map(
        (dot, index) =>
          dot.y !== undefined && (
            <chakra.circle
              key={dot.x}
              cx={dot.x}
              cy={dot.y}
              r={index === at ? 5 : 2.5}
              fill={index === at ? "bg" : "blue.solid"}
              stroke="blue.solid"
              strokeWidth={index === at ? 2 : 0}
            />
          ),
      )}
    </>
  );
}
