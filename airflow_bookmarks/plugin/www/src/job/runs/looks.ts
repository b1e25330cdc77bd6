import type { Look } from "./timeline";

/** Colour and pattern of a bar: a colour never stands alone. */
export interface BarLook {
  palette: string;
  pattern: "full" | "half" | "stripes" | "dots" | "outline";
  word: string;
}

export const BAR_LOOKS: Record<Look, BarLook> = {
  published: { palette: "green", pattern: "full", word: "published" },
  committed: { palette: "purple", pattern: "half", word: "committed, not published yet" },
  planned: { palette: "blue", pattern: "outline", word: "planned, not committed" },
  failed: { palette: "red", pattern: "stripes", word: "failed" },
  abandoned: { palette: "orange", pattern: "dots", word: "abandoned" },
  undone: { palette: "gray", pattern: "stripes", word: "undone" },
  damaged: { palette: "red", pattern: "outline", word: "can't be read" },
};
