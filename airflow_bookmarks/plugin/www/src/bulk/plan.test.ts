import { describe, expect, it, vi } from "vitest";
import { ApiError } from "../api/client";
import type { Preview, ShardedPreview } from "../api/model";
import { bulkConfirmation, bulkFactsOf, bulkName, type Looked, stepInWords, stepOf, twiceOf } from "./plan";

// The client of the API asks the page where it is, and here is none.
vi.hoisted(() => vi.stubGlobal("document", { baseURI: "http://airflow.example/" }));

const SEEN: Preview = {
  job: "a",
  change: "rewind",
  version: 4,
  to_run: 2,
  undone_runs: [3, 4],
  undone_run_count: 2,
  unreadable_runs: [],
  read_again: { files: 2, bytes: 10, rows: 5, amounts: {} },
  watermarks: {},
  state: {},
  moved: null,
  consumers: {},
  hidden_consumers: 0,
  written_twice: [],
  written_twice_unknown: [],
  files_to_clean: 0,
  outputs_to_clean: 0,
  files_left_by_undone_runs: 0,
  never_read: null,
  holder: null,
  needs_approval: false,
  stands: false,
};

const SHARDED: ShardedPreview = {
  ...SEEN,
  files_left_by_undone_runs: 0,
  shards: 3,
  unchanged_shards: 1,
  holders: {},
  by_shard: {},
};

function looked(more: Partial<Preview> = {}, state: Looked["picked"]["state"] = "IDLE"): Looked {
  return { picked: { job: "a", state, order: {} }, of: "job", seen: { ...SEEN, ...more } };
}

function sharded(more: Partial<ShardedPreview> = {}): Looked {
  return { picked: { job: "s", state: "IDLE", order: {}, shards: 4 }, of: "shards", seen: { ...SHARDED, ...more } };
}

const REFUSED: Looked = {
  picked: { job: "r", state: "IDLE", order: {} },
  of: "nothing",
  error: new ApiError(403, "'viewer' may not change job 'r'."),
};

describe("what is to be done to a job", () => {
  it.each([
    [looked(), "change"],
    [looked({ needs_approval: true }), "request"],
    [looked({ stands: true }), "stands"],
    [looked({ stands: true, needs_approval: true }), "stands"],
    [looked({ holder: "dag/run/task" }), "held"],
    [looked({ holder: "dag/run/task", needs_approval: true }), "request"],
    [looked({ holder: "dag/run/task" }, "EXPIRED"), "change"],
    [sharded(), "change"],
    [sharded({ shards: 0 }), "stands"],
    [sharded({ holders: { "s~00": "dag/run/task" } }), "held"],
    [REFUSED, "refused"],
  ])("%# is %s", (each, fate) => expect(stepOf(each, false).fate).toBe(fate));

  it("is a change by force where a run holds it and is to lose it", () => {
    expect(stepOf(looked({ holder: "dag/run/task" }), true)).toMatchObject({ fate: "change", isForced: true });
    expect(stepOf(looked(), true)).toMatchObject({ fate: "change", isForced: false });
  });
});

it("a line says where a job goes, what is read again and who has read it; or why nothing is done", () => {
  const many = { consumers: { b: 4 }, hidden_consumers: 1 };
  expect(stepInWords(stepOf(looked(many), false))).toBe(
    "To run 2: 2 runs undone; read again: 2 files, 10 B, 5 rows; 2 consumers affected",
  );
  expect(stepInWords(stepOf(looked({ to_run: 0, undone_run_count: 0 }), false))).toContain(
    "To before its first run: no run undone",
  );
  expect(stepInWords(stepOf(sharded(), false))).toContain("3 virtual shards: 2 runs undone");
  expect(stepInWords(stepOf(looked({ holder: "dag/run/task" }), false))).toBe(
    "In use by dag/run/task: nothing changes.",
  );
  expect(stepInWords(stepOf(looked({ holder: "dag/run/task" }), true))).toMatch(/; dag\/run\/task can't commit$/);
  expect(stepInWords(stepOf(looked({ stands: true }), false))).toBe("Already there: nothing changes.");
  expect(stepInWords(stepOf(REFUSED, false))).toBe("'viewer' may not change job 'r'.");
});

describe("in all", () => {
  it("sums are of what is changed or requested, and not of what stays", () => {
    const steps = [looked(), sharded(), looked({ stands: true }), REFUSED].map((each) => stepOf(each, false));
    expect(bulkFactsOf(steps)).toEqual([
      { label: "Jobs", says: "2 to change, 1 already there, 1 can't be changed" },
      { label: "Runs undone", says: "4 runs" },
      { label: "Read again", says: "4 files, 20 B, 10 rows" },
    ]);
  });

  it("what is not known of one job is not known in all, and units are kept apart", () => {
    const unknown = { files: 0, bytes: null, rows: null, amounts: { keys: null } };
    const known = { files: 0, bytes: 0, rows: 0, amounts: { keys: 3, records: 2 } };
    const steps = [unknown, known].map((read_again) => stepOf(looked({ read_again }), false));
    expect(bulkFactsOf(steps)[2]?.says).toBe("an unknown number of keys, 2 records");
  });

  it("what is removed is said, of files and of other sinks", () => {
    const steps = [looked({ files_to_clean: 2 }), looked({ outputs_to_clean: 1 })].map((each) => stepOf(each, false));
    expect(bulkFactsOf(steps).at(-1)).toEqual({
      label: "Removed",
      says: "2 files and rows of 1 output in other sinks, by the next runs. This can't be undone.",
    });
  });

  it("a target that one job surely writes twice is not unknown, and those of jobs that stay are none", () => {
    const steps = [
      looked({ written_twice: ["x", "y"], written_twice_unknown: ["x", "y"] }),
      looked({ written_twice: ["x"] }),
      looked({ written_twice: ["z"], stands: true }),
    ].map((each) => stepOf(each, false));
    expect(twiceOf(steps)).toEqual({ targets: ["x", "y"], unknown: ["y"] });
  });
});

it("the button and the words to type say what is done to how many jobs", () => {
  const steps = [looked(), looked(), looked({ needs_approval: true }), REFUSED].map((each) => stepOf(each, false));
  expect(bulkName("rewind", steps)).toBe("Rewind 2 jobs and request it for 1");
  expect(bulkConfirmation("rewind", steps)).toBe("rewind 3 jobs");
  expect(bulkName("reset", steps.slice(0, 1))).toBe("Reset 1 job");
  expect(bulkName("reset", steps.slice(2, 3))).toBe("Reset 1 job");
  expect(bulkName("reset", steps.slice(3))).toBeUndefined();
  expect(bulkConfirmation("reset", steps.slice(3))).toBeUndefined();
});
