import { chakra } from "@chakra-ui/react";
import type { RunPoint } from "../api/model";
import { paletteOf } from "../parts/StateBadge";
import { barsOf, runInWords, sentenceOf } from "./history";

const HEIGHT = 24;
const BAR = 6;
const STEP = 9;
// As many as the list asks for of each job: less stand at the right end, so that the last runs of all jobs align.
const PLACES = 10;
// The solid colours are too dark to be told apart on a dark page.
const COLOR = { base: "colorPalette.solid", _dark: "colorPalette.500" };

/** The last runs of a job as bars: the higher the more was read, hollow where the run did not commit. */
export function RunBars({ runs }: { runs: readonly RunPoint[] }) {
  const places = Math.max(PLACES, runs.length);
  const before = (places - runs.length) * STEP;
  return (
    <svg
      role="img"
      aria-label={sentenceOf(runs)}
      width={places * STEP}
      height={HEIGHT}
      viewBox={`0 0 ${places * STEP} ${HEIGHT}`}
      style={{ display: "block", flexShrink: 0 }}
    >
      {barsOf(runs, HEIGHT - 2).map(({ run, height, isFilled }, i) => (
        <chakra.rect
          // biome-ignore lint/suspicious/noArrayIndexKey: attempts share a number, and their places don't change
          key={`${run.number} ${i}`}
          colorPalette={paletteOf(run.state)}
          x={before + i * STEP + 1}
          y={HEIGHT - 1 - height}
          width={BAR}
          height={height}
          fill={isFilled ? COLOR : "transparent"}
          stroke={COLOR}
          strokeWidth={1}
        >
          <title>{runInWords(run)}</title>
        </chakra.rect>
      ))}
    </svg>
  );
}
