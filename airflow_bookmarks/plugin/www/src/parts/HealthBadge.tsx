import type { HealthNote } from "../api/model";
import { ExplainedBadge } from "./ExplainedBadge";

interface Look {
  palette: string;
  means: string;
}

// What it says in words is beside it: colours never stand alone.
const LOOKS: Readonly<Record<HealthNote["state"], Look>> = {
  FAILED: { palette: "red", means: "the last attempt failed, and nothing has committed since" },
  STUCK: { palette: "red", means: "driver died, cleanup pending" },
  LATE: { palette: "red", means: "no commit for longer than usual" },
  REWOUND: { palette: "purple", means: "an upstream job was rewound or replayed below what this job has read" },
  LAGGING: { palette: "orange", means: "behind its input" },
  WAITING: { palette: "blue", means: "a change is awaiting approval" },
  PAUSED: { palette: "orange", means: "part of its input is set aside or missing" },
  "TAKEN BACK": { palette: "purple", means: "reset, rewound or set, with no commit since" },
  OK: { palette: "green", means: "commits as usual" },
  NEW: { palette: "gray", means: "never committed" },
};

// A server of another version may have states that this page does not know: the word stands for itself then.
function lookOf(state: string): Look {
  return Object.hasOwn(LOOKS, state) ? LOOKS[state as HealthNote["state"]] : { palette: "gray", means: state };
}

/** Return the colour palette of a state of health. */
export function paletteOfHealth(state: string): string {
  return lookOf(state).palette;
}

/** Say what a state of health means. */
export function healthWords(state: string): string {
  return lookOf(state).means;
}

/** The health of a job: a word in its colour, with what it means. */
export function HealthBadge({ state }: { state: string }) {
  const look = lookOf(state);
  return (
    <ExplainedBadge colorPalette={look.palette} means={look.means}>
      {state}
    </ExplainedBadge>
  );
}
