import { inRanges } from "../../change/words";
import { inZone, timeOf } from "../../words/time";
import type { Measure } from "./measures";
import { type ChangeMark, type ChartPoint, changeInWords, type Fate } from "./points";
import { LEAST_BEFORE } from "./unusual";

const MOST_NAMED = 4;

/** Say in a sentence what is unusual in a chart, for who can't see its marks as well. */
export function unusualInWords(points: readonly ChartPoint[], measure: Pick<Measure, "say">): string {
  if (points.every((point) => point.verdict === null)) {
    return `Unusual runs are marked once ${LEAST_BEFORE} runs have a value.`;
  }
  const unusual = points.filter((point) => point.verdict?.isUnusual).reverse();
  if (unusual.length === 0) return "No run was unusual.";
  const named = unusual.slice(0, MOST_NAMED).map((point) => `run ${point.number}${valueInWords(point, measure)}`);
  const more = unusual.length > MOST_NAMED ? [`${unusual.length - MOST_NAMED} more`] : [];
  return `Unusual: ${[...named, ...more].join("; ")}.`;
}

function valueInWords({ value, verdict }: ChartPoint, { say }: Pick<Measure, "say">): string {
  if (value === null || verdict === null) return "";
  return `, ${say(value)} (median before: ${say(verdict.usual)})`;
}

const FATES: Record<Fate, string> = { living: "", failed: "failed", undone: "undone" };

/** Say what is remarkable of a run: what became of it, or that it was unusual; nothing of most. */
export function remarkOf({ fate, verdict }: Pick<ChartPoint, "fate" | "verdict">): string {
  if (fate !== "living") return FATES[fate];
  return verdict?.isUnusual ? "unusual" : "";
}

/** Say the value of a run: that of one that failed is none, rather than one that nobody knows. */
export function valueWords(point: Pick<ChartPoint, "value" | "fate">, { say }: Pick<Measure, "say">): string {
  if (point.value !== null) return say(point.value);
  return point.fate === "failed" ? "no value" : "unknown";
}

/** Say a run and its value: "Run 7, 2026-05-03 10:00:00: 1,200; unusual, the median before is 80". */
export function readout(point: ChartPoint | undefined, measure: Pick<Measure, "say">): string {
  if (point === undefined) return "";
  const time = timeOf(point.at);
  const usual = point.verdict?.isUnusual ? `, the median before is ${measure.say(point.verdict.usual)}` : "";
  const remark = `${remarkOf(point)}${usual}`;
  return `Run ${point.number}${time ? `, ${inZone(time)}` : ""}: ${valueWords(point, measure)}${remark && `; ${remark}`}`;
}

/** Say which runs did not come to count, and what people changed: what the charts mark, in sentences. */
export function marksInWords(points: readonly ChartPoint[], changes: readonly ChangeMark[]): string[] {
  const numbers = (fate: Fate) => [
    ...new Set(points.filter((point) => point.fate === fate).map((point) => point.number)),
  ];
  const runs = (["failed", "undone"] as const).flatMap((fate) => {
    const found = numbers(fate);
    if (found.length === 0) return [];
    const word = fate === "failed" ? "Failed or abandoned at least once" : "Undone";
    return [`${word}: ${found.length === 1 ? "run" : "runs"} ${inRanges(found)}.`];
  });
  const newest = [...changes].reverse();
  const more = newest.length > MOST_NAMED ? [`${newest.length - MOST_NAMED} more`] : [];
  const said = [...newest.slice(0, MOST_NAMED).map(changeInWords), ...more];
  return said.length === 0 ? runs : [...runs, `Changed: ${said.join("; ")}.`];
}
