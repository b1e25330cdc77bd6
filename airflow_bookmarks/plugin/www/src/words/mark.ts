import { inZone, timeOf } from "./time";

/** By which order the watermarks of each context compare; null and undefined: that is not known. */
export type Orders = Readonly<Record<string, string | null | undefined>>;

/** Return the time that a watermark is; undefined for one of another order. Without a known order it is as it looks. */
export function timeOfMark(mark: string | null | undefined, order: string | null | undefined): Date | undefined {
  return order == null || order === "time" ? timeOf(mark) : undefined;
}

/** Say a watermark: a time in the zone that is chosen in Airflow, anything else as it is. */
export function markWords(mark: string, order: string | null | undefined): string {
  const at = timeOfMark(mark, order);
  return at === undefined ? mark : inZone(at);
}
