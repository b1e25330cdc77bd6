/** Return the watermarks that there are, by the name of their context. */
export function knownWatermarks(watermark: Readonly<Record<string, string | null>>): [string, string][] {
  return Object.entries(watermark)
    .filter((each): each is [string, string] => each[1] !== null)
    .sort(([one], [other]) => (one < other ? -1 : 1));
}
