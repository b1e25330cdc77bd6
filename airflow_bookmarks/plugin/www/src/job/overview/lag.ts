import type { LagRow } from "../../api/model";
import { count, inBytes } from "../../words/number";
import { duration } from "../../words/time";
import { amountWords } from "./pending";

/** Say how far a job is behind a source: "2 runs, 3 files, 1.2 MB; oldest waiting for 2 h". */
export function behindWords(lag: LagRow): string {
  const said: string[] = [];
  if (lag.runs) said.push(count(lag.runs, "run"));
  if (lag.files) said.push(count(lag.files, "file"));
  const amount = amountWords(lag);
  if (amount !== undefined && lag.count !== 0) said.push(amount);
  if (lag.bytes) said.push(inBytes(lag.bytes));
  if (said.length === 0 && lag.recorded_by != null) return "nothing was left unread";
  if (said.length === 0) return lag.state === "UNKNOWN" ? "unknown" : "nothing unread";
  const unread = said.join(", ");
  return lag.seconds ? `${unread}; oldest waiting for ${duration(lag.seconds)}` : unread;
}

/** Say how far a job has read an upstream: "run 4 of 7"; undefined for folders, which have no runs. */
export function readWords(lag: LagRow): string | undefined {
  if (lag.published === null) return undefined;
  return `run ${lag.consumed ?? 0} of ${lag.published}`;
}
