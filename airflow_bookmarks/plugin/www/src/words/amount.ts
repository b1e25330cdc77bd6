import { amountsInWords, count } from "./number";

/** How much was read: files, and by its unit what is not counted in files. Null and undefined: not known. */
export interface Amounts {
  files?: number | null | undefined;
  amounts?: Readonly<Record<string, number | null>> | undefined;
}

/** Say how much was read in the units of what was read: "3 files, 40 rows". Undefined where nobody knows of anything. */
export function readWords({ files, amounts }: Amounts): string | undefined {
  const said = [files == null ? undefined : count(files, "file"), amountsInWords(amounts)];
  return said.filter((words) => words !== undefined).join(", ") || undefined;
}

/** Return how much contexts hold, each by the figures that are stored of it. Null: one of them does not know it. */
export function amountsOf(figures: readonly Readonly<Record<string, unknown>>[]): Required<Amounts> {
  const amounts: Record<string, number | null> = {};
  for (const each of figures.filter(isCounted)) {
    const before = amounts[each.unit];
    const counted = numberOf(each.count);
    amounts[each.unit] = before === null || counted === null ? null : (before ?? 0) + counted;
  }
  const inFiles = figures.filter((each) => !isCounted(each));
  // Beside tables alone there are no files, rather than none.
  return { files: inFiles.length === 0 && figures.length > 0 ? null : sumOf(inFiles, "files"), amounts };
}

/** Return the sum of one figure of contexts; null where one of them does not know it. */
export function sumOf(figures: readonly Readonly<Record<string, unknown>>[], name: string): number | null {
  return figures.reduce<number | null>((total, each) => {
    const value = numberOf(each[name]);
    return total === null || value === null ? null : total + value;
  }, 0);
}

function isCounted(figures: Readonly<Record<string, unknown>>): figures is { unit: string; count?: unknown } {
  return typeof figures.unit === "string" && figures.unit !== "files";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
