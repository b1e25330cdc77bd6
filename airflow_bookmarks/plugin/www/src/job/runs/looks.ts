/** How a run is drawn: by what became of it. */
export type Look = "published" | "committed" | "planned" | "failed" | "abandoned" | "undone" | "damaged";

export type Pattern = "full" | "half" | "outline" | "hatch" | "dots" | "stripes" | "rungs";

/** Colour and pattern of a bar: a colour never stands alone, so each look has a pattern of its own. */
export interface BarLook {
  palette: string;
  pattern: Pattern;
  word: string;
}

export const BAR_LOOKS: Record<Look, BarLook> = {
  published: { palette: "green", pattern: "full", word: "published" },
  committed: { palette: "purple", pattern: "half", word: "committed, not published yet" },
  planned: { palette: "blue", pattern: "outline", word: "planned, not committed" },
  failed: { palette: "red", pattern: "hatch", word: "failed" },
  abandoned: { palette: "orange", pattern: "dots", word: "abandoned" },
  undone: { palette: "gray", pattern: "stripes", word: "undone" },
  damaged: { palette: "red", pattern: "rungs", word: "can't be read" },
};

const LOOKS: Record<string, Look> = {
  PUBLISHED: "published",
  COMMITTED: "committed",
  PLANNED: "planned",
  FAILED: "failed",
  ABANDONED: "abandoned",
  UNDONE: "undone",
};

/** Return how a run of some state is drawn. */
export function lookOf(state: string): Look {
  return (Object.hasOwn(LOOKS, state) && LOOKS[state]) || "damaged";
}

/** Return the looks of some states, each once, in their order. */
export function looksOf(states: readonly string[]): Look[] {
  const shown = new Set(states.map(lookOf));
  return (Object.keys(BAR_LOOKS) as Look[]).filter((look) => shown.has(look));
}
