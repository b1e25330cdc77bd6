/** A colour by the name of its token, in the light and in the dark. */
export interface Ink {
  base: string;
  _dark: string;
}

// Three times as light, or as dark, as any ground that is drawn on (ink.test.ts): `solid` is the same in light and dark,
// and the colours of borders are there to be overlooked.

/** What is drawn in the colour of its palette: bars, lines, points. */
export const INK: Ink = { base: "colorPalette.700", _dark: "colorPalette.400" };

/** What fills a shape with an edge in `INK`: more of its colour is seen. It stands out from the page, with no row pointed at. */
export const FILL: Ink = { base: "colorPalette.600", _dark: "colorPalette.400" };

/** Lines that values are read off at, and marks of an axis. */
export const GRID: Ink = { base: "gray.500", _dark: "gray.500" };
