import { Badge } from "@chakra-ui/react";

interface Look {
  palette: string;
  means: string;
}

// Colours never stand alone: the badge has the word, and its tooltip says what it means.
const LOOKS: Record<string, Look> = {
  NEW: { palette: "gray", means: "no run has committed yet" },
  IDLE: { palette: "green", means: "all that was committed is published" },
  RUNNING: { palette: "blue", means: "a run holds the job" },
  EXPIRED: { palette: "orange", means: "a run held the job, and its lease ran out: the next one takes over" },
  DUE: { palette: "purple", means: "committed, and still to be published or cleaned: the next run does that first" },
  DAMAGED: { palette: "red", means: "the state can't be read: airflow-bookmarks doctor says more" },
  OK: { palette: "green", means: "keeps up with what it reads" },
  LAGGING: { palette: "orange", means: "falls behind what it reads" },
  STALLED: { palette: "red", means: "runs, and does not get on" },
  STOPPED: { palette: "red", means: "there is something to read, and nothing runs" },
  REWOUND: { palette: "purple", means: "an upstream was rewound behind what this job has read" },
  REPLAYED: { palette: "purple", means: "an upstream replaced the output of a run that this job has read" },
  UNKNOWN: { palette: "gray", means: "nobody can tell" },
  PLANNED: { palette: "blue", means: "began to read, and did not commit" },
  COMMITTED: { palette: "purple", means: "committed, not published yet" },
  PUBLISHED: { palette: "green", means: "what it wrote is visible, and consumers know of it" },
  FAILED: { palette: "red", means: "did not commit; its window is read again" },
  ABANDONED: { palette: "gray", means: "given up; its window is read again" },
  UNDONE: { palette: "gray", means: "left out by a reset, rewind, set or undo" },
};

/** Return the colour palette of a state, for what is drawn. */
export function paletteOf(state: string): string {
  return LOOKS[state]?.palette ?? "gray";
}

/** The state of a job, a run or a dependency: a word in its colour. */
export function StateBadge({ state }: { state: string }) {
  const look = LOOKS[state] ?? { palette: "gray", means: state };
  return (
    <Badge colorPalette={look.palette} variant="surface" title={look.means}>
      {state}
    </Badge>
  );
}
