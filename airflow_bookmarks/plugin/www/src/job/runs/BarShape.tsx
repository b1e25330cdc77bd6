import { chakra } from "@chakra-ui/react";
import { useId } from "react";
import { FILL, INK } from "../../parts/ink";
import { BAR_LOOKS, type Look, type Pattern } from "./looks";

interface BarShapeProps {
  look: Look;
  x: number;
  y: number;
  width: number;
  height: number;
}

// What is repeated within a bar; a bar that is thinner than that would show none of it.
const TILE = 6;
const SMALL_TILE = 4;

/** A bar in the colour and pattern of what became of a run. */
export function BarShape({ look, ...box }: BarShapeProps) {
  const { palette, pattern } = BAR_LOOKS[look];
  return (
    <g data-look={look}>
      <chakra.rect
        {...box}
        rx={Math.min(2, box.width / 4)}
        colorPalette={palette}
        fill={pattern === "full" ? FILL : "transparent"}
        stroke={INK}
        strokeWidth={1}
        strokeDasharray={pattern === "outline" ? "2 2" : undefined}
      />
      {pattern === "half" && (
        <chakra.rect {...box} y={box.y + box.height / 2} height={box.height / 2} colorPalette={palette} fill={FILL} />
      )}
      {pattern in TILES && <Filling pattern={pattern} palette={palette} {...box} />}
    </g>
  );
}

interface FillingProps extends Omit<BarShapeProps, "look"> {
  pattern: Pattern;
  palette: string;
}

function Filling({ pattern, palette, ...box }: FillingProps) {
  const id = useId();
  const size = box.width < 2 * TILE || box.height < 2 * TILE ? SMALL_TILE : TILE;
  const tile = TILES[pattern]?.(size);
  return (
    <>
      <defs>
        <pattern
          id={id}
          x={box.x}
          y={box.y}
          width={size}
          height={size}
          patternUnits="userSpaceOnUse"
          patternTransform={tile?.turn === undefined ? undefined : `rotate(${tile.turn})`}
        >
          <chakra.path d={tile?.path} colorPalette={palette} fill={INK} />
        </pattern>
      </defs>
      <rect {...box} fill={`url(#${id})`} />
    </>
  );
}

interface Tile {
  path: string;
  /** By how many degrees it is turned. */
  turn?: number;
}

// What is repeated in a square of a size. Lines are a third or less of it, so that the ground stays as visible as they.
const TILES: Partial<Record<Pattern, (size: number) => Tile>> = {
  stripes: (size) => ({ path: `M0 0 H${size / 3} V${size} H0 Z`, turn: 45 }),
  hatch: (size) => ({ path: `M0 0 H${size} V${size / 4} H${size / 4} V${size} H0 Z`, turn: 45 }),
  dots: (size) => ({ path: `M${size / 4} ${size / 4} h${size / 2} v${size / 2} h-${size / 2} Z` }),
  rungs: (size) => ({ path: `M0 0 H${size} V${size / 3} H0 Z` }),
};
