/** From so many runs before on, one can say what is usual. */
export const LEAST_BEFORE = 8;
// Of more a job that grows would compare itself with what it was long ago.
const MOST_BEFORE = 30;
// The median of the distances from the median, times this, is the standard deviation of normally distributed values.
const SCALE = 1.4826;
const FAR = 3;
// Runs that read nearly the same each time differ by next to nothing, which nobody has to be told.
const LEAST_SPREAD = 0.05;

/** How a value compares with those of the runs before it. */
export interface Verdict {
  /** The median of the runs before. */
  usual: number;
  isUnusual: boolean;
}

/**
 * Compare each value with the up to 30 known ones before it, oldest first. A value is unusual more than three scaled
 * median absolute deviations away from their median: unlike mean and standard deviation, neither follows the outliers that
 * are looked for. Null: the value is not known, or fewer than 8 are known before it.
 *
 * `least` is a deviation that is always usual: of runs that all read one file none is unusual for reading two.
 */
export function judge(values: readonly (number | null)[], least = 0): (Verdict | null)[] {
  const before: number[] = [];
  return values.map((value) => {
    if (value === null) return null;
    const verdict = before.length < LEAST_BEFORE ? null : compare(value, before.slice(-MOST_BEFORE), least);
    before.push(value);
    return verdict;
  });
}

function compare(value: number, before: readonly number[], least: number): Verdict {
  const usual = medianOf(before);
  const deviation = medianOf(before.map((each) => Math.abs(each - usual)));
  const spread = Math.max(SCALE * deviation, LEAST_SPREAD * Math.abs(usual), least);
  return { usual, isUnusual: Math.abs(value - usual) > FAR * spread };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
