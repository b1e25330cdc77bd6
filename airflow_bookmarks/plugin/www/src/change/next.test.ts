import { describe, expect, it } from "vitest";
import { nextOf } from "./next";

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
