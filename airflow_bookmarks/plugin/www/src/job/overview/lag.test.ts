import { expect, it } from "vitest";
import type { LagRow } from "../../api/model";
import { behindWords, readWords } from "./lag";

const LAG: LagRow = {
  job: "report",
  source: "clean",
  kind: "upstream",
  contexts: ["in"],
  state: "LAGGING",
  consumed: 4,
  published: 7,
  runs: 3,
  files: 12,
  bytes: 2_000_000,
  seconds: 7200,
  why: null,
};
const NONE = { runs: 0, files: 0, bytes: 0, seconds: null };

it("what is unread is counted", () => expect(behindWords(LAG)).toBe("3 runs, 12 files, 2 MB; oldest waiting for 2 h"));
it("a job of which only a record tells is not said to have read all", () =>
  expect(behindWords({ ...LAG, ...NONE, state: "UNKNOWN", recorded_by: 4 })).toBe("nothing was left unread"));
it("a job that has read all is told so", () =>
  expect(behindWords({ ...LAG, ...NONE, state: "OK" })).toBe("nothing unread"));
it("what is not counted in files is counted in its unit", () =>
  expect(behindWords({ ...LAG, ...NONE, files: null, runs: null, bytes: null, unit: "keys", count: 4 })).toBe(
    "4 keys",
  ));
it("what is not known is no zero", () => expect(behindWords({ ...LAG, ...NONE, state: "UNKNOWN" })).toBe("unknown"));
it("folders have no runs", () => expect(readWords({ ...LAG, consumed: null, published: null })).toBeUndefined());
it("an upstream that was never read is at run 0", () =>
  expect(readWords({ ...LAG, consumed: null })).toBe("run 0 of 7"));
