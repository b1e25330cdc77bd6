import { Badge } from "@chakra-ui/react";
import type { HealthNote } from "../api/model";

interface Look {
  palette: string;
  means: string;
}

// What it says in words is beside it: colours never stand alone.
const LOOKS: Record<HealthNote["state"], Look> = {
  FAILED: { palette: "red", means: "the last try failed, and nothing has committed since" },
  STUCK: { palette: "red", means: "a driver died, and what it left waits for the next run" },
  LATE: { palette: "red", means: "silent for longer than usual" },
  REWOUND: { palette: "purple", means: "an upstream job went back, or was replayed, below what this job has read" },
  LAGGING: { palette: "orange", means: "falls behind what it reads" },
  WAITING: { palette: "blue", means: "a change waits for a second person" },
  PAUSED: { palette: "orange", means: "part of its input is set aside, or missing" },
  "TAKEN BACK": { palette: "purple", means: "reset, rewound or set, and it has not committed since" },
  OK: { palette: "green", means: "it commits as usual" },
  NEW: { palette: "gray", means: "it has never committed" },
};

/** Return the colour palette of a state of health. */
export function paletteOfHealth(state: HealthNote["state"]): string {
  return LOOKS[state].palette;
}

/** Say what a state of health means. */
export function healthWords(state: HealthNote["state"]): string {
  return LOOKS[state].means;
}

/** The health of a job: a word in its colour. */
export function HealthBadge({ state }: { state: HealthNote["state"] }) {
  return (
    <Badge colorPalette={LOOKS[state].palette} variant="surface" title={LOOKS[state].means}>
      {state}
    </Badge>
  );
}
