import { describe, expect, it } from "vitest";
import type { ShardedPreview, ShardedSpec } from "../api/model";
import { shardedActionName, shardedFactsOf, shardedSpecOf } from "./sharded";

const DRAFT = { kind: "rewind", to: "", contexts: null, clean: false } as const;

describe("a change of a sharded job", () => {
  it.each([
    [DRAFT, { lacks: "a run id or a time" }],
    [{ ...DRAFT, to: " ops/1/clean " }, { value: { kind: "rewind", to: "ops/1/clean", clean: false } }],
    [{ ...DRAFT, kind: "reset", clean: true }, { value: { kind: "reset", clean: true } }],
    [{ ...DRAFT, kind: "reset", contexts: [] }, { lacks: "a context" }],
    [
      { ...DRAFT, kind: "reset", contexts: ["b", "a"], clean: true },
      { value: { kind: "reset", clean: false, contexts: ["a", "b"] } },
    ],
  ] as const)("of %j is %j", (draft, spec) => expect(shardedSpecOf(draft)).toEqual(spec));
  it.each<[ShardedSpec, string]>([
    [{ kind: "reset", clean: false }, "Reset all shards"],
    [{ kind: "rewind", to: "ops/1/clean", clean: false }, "Rewind all shards to ops/1/clean"],
    [{ kind: "reset", clean: false, contexts: ["raw"] }, "Reset raw in all shards"],
  ])("%j is called %s", (spec, name) => expect(shardedActionName(spec)).toBe(name));
  it("is told in sums", () => {
    const seen: ShardedPreview = {
      job: "late",
      change: "reset",
      version: 9,
      shards: 3,
      unchanged_shards: 1,
      undone_run_count: 5,
      unreadable_runs: [],
      read_again: { files: 4, bytes: 1000, rows: null, amounts: {} },
      consumers: { report: 2 },
      hidden_consumers: 1,
      written_twice: [],
      written_twice_unknown: [],
      files_to_clean: 0,
      outputs_to_clean: 0,
      files_left_by_undone_runs: 0,
      holders: {},
      by_shard: {},
    };
    expect(shardedFactsOf(seen).map(({ says }) => says)).toEqual([
      "3 shards",
      "5 runs",
      "4 files, 1 kB, rows not counted",
      "report (has read up to run 2), 1 job you don't have access to",
    ]);
  });
});
