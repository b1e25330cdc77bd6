import { describe, expect, it } from "vitest";
import { stillToDo, taskWords } from "./standing";

describe("what is still to be done", () => {
  it("is nothing for a job that is done", () =>
    expect(stillToDo({ due_run_number: null, cleaning: false })).toEqual([]));
  it("names the run that is due, and the cleaning", () => {
    const [due, cleaning] = stillToDo({ due_run_number: 7, cleaning: true });
    expect(due).toContain("Run 7 is committed and still to be published");
    expect(cleaning).toContain("still to be removed");
  });
});

describe("the task of a job", () => {
  it("has its map index", () => expect(taskWords({ dag_id: "d", task_id: "clean", map_index: 3 })).toBe("clean [3]"));
  it("has none where it is not mapped", () =>
    expect(taskWords({ dag_id: "d", task_id: "clean", map_index: -1 })).toBe("clean"));
  it("is unknown outside Airflow", () => expect(taskWords({})).toBeUndefined());
});
