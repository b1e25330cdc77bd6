import type { ChartPoint } from "./points";

/** What is marked in a chart, each by a shape of its own besides its colour. */
export type Mark = "run" | "unusual" | "undone" | "failed" | "change" | "usual";

interface MarkLook {
  palette: string;
  word: string;
}

export const MARKS: Record<Mark, MarkLook> = {
  run: { palette: "blue", word: "a run" },
  unusual: { palette: "orange", word: "an unusual run" },
  usual: { palette: "blue", word: "the median of the runs before" },
  undone: { palette: "gray", word: "an undone run" },
  failed: { palette: "red", word: "a run that failed or was abandoned" },
  change: { palette: "purple", word: "a change by a person" },
};

/** The palettes of all marks. */
export const PALETTES = Object.values(MARKS).map((look) => look.palette);

/** Return how a run is marked. */
export function markOf(point: Pick<ChartPoint, "fate" | "verdict">): Mark {
  if (point.fate !== "living") return point.fate;
  return point.verdict?.isUnusual ? "unusual" : "run";
}

/** Return the marks that a chart has, in the order of a legend. */
export function marksOf(points: readonly ChartPoint[], hasChanges: boolean): Mark[] {
  const shown = new Set<Mark>(points.map(markOf));
  if (points.some((point) => point.verdict !== null)) shown.add("usual");
  if (hasChanges) shown.add("change");
  return (Object.keys(MARKS) as Mark[]).filter((mark) => shown.has(mark));
}
