import { inZone, timeOf } from "../words/time";

/** Return the watermarks that there are, by the name of their context. */
export function knownWatermarks(watermark: Readonly<Record<string, string | null>>): [string, string][] {
  return Object.entries(watermark)
    .filter((each): each is [string, string] => each[1] !== null)
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Say a watermark in full: a time in the zone of whoever looks, anything else as it is. */
export function watermarkInFull(watermark: string): string {
  const at = timeOf(watermark);
  return at === undefined ? watermark : inZone(at);
}
