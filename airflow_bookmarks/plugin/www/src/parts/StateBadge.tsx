import { ExplainedBadge } from "./ExplainedBadge";

interface Look {
  palette: string;
  means: string;
}

// Colours never stand alone: the badge has the word, and explains it.
const LOOKS: Record<string, Look> = {
  NEW: { palette: "gray", means: "no run has committed yet" },
  // Not green: a job is idle after a run that failed, too. How it is, its health says.
  IDLE: { palette: "gray", means: "everything committed is published" },
  RUNNING: { palette: "blue", means: "a run is working on the job" },
  EXPIRED: { palette: "orange", means: "a run held the job and its lease expired: the next run takes over" },
  DUE: { palette: "purple", means: "committed, but not yet published or cleaned: the next run does that first" },
  DAMAGED: { palette: "red", means: "the state can't be read: run airflow-bookmarks doctor for details" },
  OK: { palette: "green", means: "keeps up with what it reads" },
  LAGGING: { palette: "orange", means: "has fallen behind what it reads" },
  STALLED: { palette: "red", means: "runs, but makes no progress" },
  STOPPED: { palette: "red", means: "has unread input, but no run reads it" },
  REWOUND: { palette: "purple", means: "an upstream job was rewound to before what this job has read" },
  REPLAYED: { palette: "purple", means: "an upstream job replaced the output of a run that this job has read" },
  UNKNOWN: { palette: "gray", means: "can't be determined" },
  PLANNED: { palette: "blue", means: "has planned what to read, but not committed" },
  COMMITTED: { palette: "purple", means: "committed, not published yet" },
  PUBLISHED: { palette: "green", means: "its output is visible, and consumers may read it" },
  FAILED: { palette: "red", means: "did not commit; the next run reads its input again" },
  ABANDONED: { palette: "gray", means: "abandoned; another run reads its input again" },
  UNDONE: { palette: "gray", means: "undone by a reset, rewind, set or undo" },
};

// A word that this page does not know stands for itself.
function lookOf(state: string): Look {
  const known = Object.hasOwn(LOOKS, state) ? LOOKS[state] : undefined;
  return known ?? { palette: "gray", means: state };
}

/** Return the colour palette of a state, for what is drawn. */
export function paletteOf(state: string): string {
  return lookOf(state).palette;
}

/** Say what a state means. */
export function stateWords(state: string): string {
  return lookOf(state).means;
}

/** The state of a job, a run or a dependency: a word in its colour. */
export function StateBadge({ state }: { state: string }) {
  const look = lookOf(state);
  return (
    <ExplainedBadge colorPalette={look.palette} means={look.means}>
      {state}
    </ExplainedBadge>
  );
}
