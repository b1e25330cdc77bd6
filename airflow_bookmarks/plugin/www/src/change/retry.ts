import type { ChangeSpec, QuarantinedFile } from "../api/model";
import { count } from "../words/number";

/** What is to be read again of what a context has set aside: one file, or all of them (null). */
export interface Retry {
  ctx: string;
  file: QuarantinedFile | null;
  /** How many files that is; null: not known. */
  count: number | null;
}

/** Return the change that has quarantined files read again. */
export function retrySpec({ ctx, file }: Retry): ChangeSpec {
  return { kind: "set", ctx, value: `retry:${file === null ? "*" : file.path}` };
}

/** Name what is retried: "Retry 1 file of raw". */
export function retryName({ ctx, file, count: files }: Retry): string {
  if (file !== null) return `Retry 1 file of ${ctx}`;
  return files === null ? `Retry all files of ${ctx}` : `Retry ${count(files, "file")} of ${ctx}`;
}
