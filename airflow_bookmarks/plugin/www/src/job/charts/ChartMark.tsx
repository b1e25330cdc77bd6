import { chakra } from "@chakra-ui/react";
import { INK } from "../../parts/ink";
import { MARKS, type Mark } from "./marks";

interface ChartMarkProps {
  mark: Mark;
  x: number;
  y: number;
  /** Whether it is the one that the readout tells of. */
  isPicked?: boolean;
}

/** A mark of a chart, around a place: told from the others by its shape, and not by its colour alone. */
export function ChartMark({ mark, x, y, isPicked = false }: ChartMarkProps) {
  const color = { colorPalette: MARKS[mark].palette, stroke: INK };
  const at = `translate(${x}, ${y})${isPicked ? " scale(1.4)" : ""}`;
  return (
    <g transform={at} data-mark={mark}>
      {mark === "run" && (
        <chakra.circle
          r={isPicked ? 3.5 : 2.5}
          fill={isPicked ? "bg" : INK}
          strokeWidth={isPicked ? 2 : 0}
          {...color}
        />
      )}
      {mark === "unusual" && <chakra.path d="M0 -6 L6 0 L0 6 L-6 0 Z" fill={INK} {...color} />}
      {mark === "undone" && (
        <chakra.rect x={-3.5} y={-3.5} width={7} height={7} fill="bg" strokeWidth={1.5} {...color} />
      )}
      {mark === "failed" && <chakra.path d="M-4 -4 L4 4 M-4 4 L4 -4" fill="none" strokeWidth={2} {...color} />}
      {mark === "change" && <chakra.path d="M-5 -4 H5 L0 5 Z" fill={INK} {...color} />}
      {mark === "usual" && <chakra.path d="M-8 0 H8" fill="none" strokeWidth={1.5} strokeDasharray="4 3" {...color} />}
    </g>
  );
}
