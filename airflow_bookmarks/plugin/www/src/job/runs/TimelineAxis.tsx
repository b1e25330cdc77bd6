import { chakra } from "@chakra-ui/react";
import { GRID } from "../../parts/ink";
import { PAD, place } from "./TimelineBar";
import type { Axis } from "./timeline";

interface TimelineAxisProps {
  axis: Axis | undefined;
  width: number;
}

const LABEL_ROOM = 76;

/** The marks above the bars. */
export function TimelineAxis({ axis, width }: TimelineAxisProps) {
  if (axis === undefined || width < 2 * PAD) return null;
  const every = Math.max(1, Math.ceil((axis.ticks.length * LABEL_ROOM) / width));
  return (
    <svg width={width} height={22} aria-hidden>
      {axis.ticks.map((tick, index) => (
        <g key={tick.label + tick.at} transform={`translate(${place(tick.at, width)}, 0)`}>
          <chakra.line y1={17} y2={22} stroke={GRID} />
          {index % every === 0 && (
            <chakra.text y={13} fontSize="11px" textAnchor={anchor(tick.at)} fill="fg.muted">
              {tick.label}
            </chakra.text>
          )}
        </g>
      ))}
    </svg>
  );
}

// The outermost labels would leave the picture.
function anchor(at: number): "start" | "middle" | "end" {
  if (at < 0.04) return "start";
  return at > 0.96 ? "end" : "middle";
}
