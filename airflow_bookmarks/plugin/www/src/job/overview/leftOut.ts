import type { PendingRow, SkippedFile } from "../../api/model";
import { inFull } from "../../words/number";

/** What the next run would leave out of a context, for one reason. */
export interface LeftOutRow {
  ctx: string;
  reason: string;
  count: number;
  /** What the reason means, and whether a later run reads it. */
  meaning: Meaning | undefined;
  /** Some of the files; empty where only their number is known. */
  examples: readonly SkippedFile[];
}

interface Meaning {
  what: string;
  later: string;
}

/** The words of `core.selection.reason`; docs/guides/left_out.md says more about each. */
export const REASONS: Readonly<Record<string, Meaning>> = {
  hidden: { what: "The name marks a file that is hidden or unfinished; Spark ignores it too.", later: "Rename it." },
  nested: { what: "It lies in a folder that is not a partition.", later: "Name the folder like a partition." },
  special: { what: "Spark could not open it.", later: "Replace it with a regular file." },
  marker: { what: "An empty object that stands for a folder.", later: "Nothing to read." },
  excluded: { what: "The job's exclusions or filters leave it out.", later: "Change the exclusion or filter." },
  empty_partitions: { what: "A partition whose folder is empty or missing.", later: "Read once there are files." },
  other_shards: { what: "Another virtual shard reads it.", later: "Read by that shard." },
  before_start: { what: "It is older than the job's start; it counts as read.", later: "Set an earlier position." },
  late: { what: "It is older than the newest file read by more than late_after.", later: "Use a longer late_after." },
  expired: { what: "It is older than what the bookmark remembers.", later: "Set an earlier position, or rewind." },
  settling: { what: "It may still be growing.", later: "Read once it is older." },
  unmatched: { what: "Its name has no place in the job's sequence.", later: "Change the sequence." },
  touched: { what: "It was read; only its time changed since.", later: 'Use on_touch="reprocess".' },
  over_bound: { what: "The run's bound leaves it to a later run.", later: "Read by a later run." },
  overwritten: { what: "It was read and has another version now.", later: 'Use on_overwrite="reprocess".' },
  quarantined: { what: "It can't be parsed.", later: "Replace the file, or retry it." },
  missing: { what: "It changed or disappeared after it was planned.", later: "The next run reads it as it is then." },
  no_key: { what: "The row has no key.", later: "Fill in the key." },
  not_compared: { what: "The columns changed, so an update can't be detected.", later: "Update it again, or reset." },
};

/** Return what the next run would leave out, by context and reason; the most first within a context. */
export function leftOut(contexts: readonly PendingRow[]): LeftOutRow[] {
  return contexts.flatMap(({ ctx, skipped, skipped_files: files }) =>
    Object.entries(skipped)
      .filter(([, count]) => count > 0)
      .sort(([, one], [, other]) => other - one)
      .map(([reason, count]) => ({
        ctx,
        reason,
        count,
        meaning: REASONS[reason],
        examples: files.filter((file) => file.reason === reason),
      })),
  );
}

/** Say how many more there are than are named: "and 1,990 more". Undefined where all are named. */
export function moreWords({ count, examples }: LeftOutRow): string | undefined {
  const more = count - examples.length;
  return examples.length > 0 && more > 0 ? `and ${inFull(more)} more` : undefined;
}
