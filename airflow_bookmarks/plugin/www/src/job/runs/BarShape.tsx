import { chakra } from "@chakra-ui/react";
import { useId } from "react";
import { BAR_LOOKS } from "./looks";
import type { Look } from "./timeline";

interface BarShapeProps {
  look: Look;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A bar in the colour and pattern of what became of a run. */
export function BarShape({ look, ...box }: BarShapeProps) {
  const id = useId();
  const { palette, pattern } = BAR_LOOKS[look];
  const isFilled = pattern === "full" || pattern === "half";
  return (
    <g>
      <chakra.rect
        {...box}
        rx={2}
        colorPalette={palette}
        fill={pattern === "full" ? "colorPalette.solid" : pattern === "outline" ? "transparent" : "colorPalette.subtle"}
        stroke={isFilled ? "colorPalette.solid" : "colorPalette.fg"}
        strokeWidth={1}
        strokeDasharray={pattern === "outline" ? "3 2" : undefined}
      />
      {pattern === "half" && (
        <chakra.rect
          {...box}
          y={box.y + box.height / 2}
          height={box.height / 2}
          colorPalette={palette}
          fill="colorPalette.solid"
        />
      )}
      {(pattern === "stripes" || pattern === "dots") && (
        <>
          <defs>
            <pattern id={id} width={6} height={6} patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
              {pattern === "stripes" ? (
                <chakra.rect width={2} height={6} colorPalette={palette} fill="colorPalette.fg" />
              ) : (
                <chakra.circle cx={3} cy={3} r={1.3} colorPalette={palette} fill="colorPalette.fg" />
              )}
            </pattern>
          </defs>
          <rect {...box} rx={2} fill={`url(#${id})`} />
        </>
      )}
    </g>
  );
}
