import { describe, expect, it } from "vitest";
import { sample } from "../job/runs/sample";
import { nextOf, progressWords } from "./next";

const TASK = { dag_id: "flights", task_id: "clean/all" };

describe("what comes after a change", () => {
  it("leads to the task that runs the job", () => {
    expect(nextOf("rewind", TASK)).toEqual({
      before: "To run the job now, trigger its DAG, or clear",
      link: "task clean/all of DAG flights",
      to: "/dags/flights/tasks/clean%2Fall",
    });
  });

  it("leads to the DAG where several of its tasks run the job", () => {
    expect(nextOf("reset", { dag_id: "flights", task_id: null })?.to).toBe("/dags/flights");
  });

  it("says nothing where no run is to come, or no DAG runs the job", () => {
    expect(nextOf("protect", TASK)).toBeUndefined();
    expect(nextOf("delete", TASK)).toBeUndefined();
    expect(nextOf("reset", { dag_id: null, task_id: null })).toBeUndefined();
  });
});

describe("the progress of the next run", () => {
  const before = [sample(4), sample(3)];
  const next = (more: Parameters<typeof sample>[1]) =>
    progressWords([sample(5, { epoch: 2, ...more }), ...before], 2, true);
  it("is that of the newest run since the change", () => {
    expect(progressWords(before, 2, false)).toBe("not started yet.");
    expect(progressWords(before, 2, true)).toBe("A run has started and is still planning.");
    expect(next({ state: "PLANNED" })).toBe("Run 5 has started: it reads 5 files, 5 kB.");
    expect(next({ state: "COMMITTED" })).toBe("Run 5 has read 5 files, 5 kB and is not published yet.");
    expect(next({})).toBe("Run 5 has read 5 files, 5 kB and is published.");
    expect(next({ state: "FAILED", error: "no such column", files: null, bytes: null })).toBe(
      "Run 5 failed: no such column",
    );
    expect(next({ state: "ABANDONED" })).toBe("Run 5: ABANDONED.");
  });
});
