import { describe, expect, it } from "vitest";
import { numbersOf, shardWords, stillToDo, taskWords } from "./health";

describe("what is still to be done", () => {
  it("is nothing for a job that is done", () =>
    expect(stillToDo({ due_run_number: null, cleaning: false })).toEqual([]));
  it("names the run that is due, and the cleaning", () => {
    const [due, cleaning] = stillToDo({ due_run_number: 7, cleaning: true });
    expect(due).toContain("Run 7 is committed, publish pending");
    expect(cleaning).toContain("Cleanup pending");
  });
});

describe("the task of a job", () => {
  it("has its map index", () => expect(taskWords({ dag_id: "d", task_id: "clean", map_index: 3 })).toBe("clean [3]"));
  it("has none where it is not mapped", () =>
    expect(taskWords({ dag_id: "d", task_id: "clean", map_index: -1 })).toBe("clean"));
  it("is unknown outside Airflow", () => expect(taskWords({})).toBeUndefined());
});

describe("the run of a job", () => {
  it("is its last one", () =>
    expect(numbersOf({ run_number: 25, data_run_number: 25 })).toEqual({ title: "Run", said: "25", last: undefined }));
  it("is the one after which its data stands, where that went back", () =>
    expect(numbersOf({ run_number: 25, data_run_number: 20 })).toEqual({
      title: "Data up to",
      said: "run 20",
      last: "last run number 25",
    }));
  it("may be none", () => expect(numbersOf({ run_number: 4, data_run_number: 0 }).said).toBe("no run"));
  it("may not be known", () => expect(numbersOf({}).said).toBe("unknown"));
});

describe("the shards of a job", () => {
  it.each([
    [{ shards: null }, undefined],
    [{ shards: 64, held_shards: 0, due_shards: 0, damaged_shards: 0 }, "64"],
    [{ shards: 64, held_shards: 2, due_shards: 1, damaged_shards: 3 }, "64, 2 held, 1 due, 3 damaged"],
  ])("%j are %s", (job, words) => expect(shardWords(job)).toBe(words));
});
