import { Flex } from "@chakra-ui/react";
import type { JobRow, RunPoint } from "../api/model";
import { BarShape } from "../job/runs/BarShape";
import { LookMeaning } from "../job/runs/LookMeaning";
import { BAR_LOOKS, looksOf } from "../job/runs/looks";
import { barsOf, runInWords, sentenceOf } from "./history";

const HEIGHT = 24;
const BAR = 6;
const STEP = 9;
// As many as the list asks for of each job: less stand at the right end, so that the last runs of all jobs align.
const PLACES = 10;

/** The last runs of a job as bars: the higher the more was read, in the pattern of what became of the run. */
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
      {barsOf(runs, HEIGHT - 2).map(({ run, height, look }, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attempts share a number, and their places don't change
        <g key={`${run.number} ${i}`}>
          <title>{runInWords(run)}</title>
          <BarShape look={look} x={before + i * STEP + 1} y={HEIGHT - 1 - height} width={BAR} height={height} />
        </g>
      ))}
    </svg>
  );
}

/** What the bars of a list mean: those that are there. Nothing where all runs are published. */
export function RunBarsLegend({ rows }: { rows: readonly JobRow[] }) {
  const looks = looksOf(rows.flatMap((row) => row.runs.map((run) => run.state)));
  if (looks.every((look) => look === "published")) return null;
  return (
    <Flex as="ul" columnGap={4} rowGap={1} wrap="wrap" listStyleType="none" aria-label="What the bars of runs mean">
      {looks.map((look) => (
        <LookMeaning key={look} look={look} width={BAR}>
          {BAR_LOOKS[look].word}
        </LookMeaning>
      ))}
    </Flex>
  );
}
