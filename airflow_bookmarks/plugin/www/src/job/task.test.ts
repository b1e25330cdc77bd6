import { describe, expect, it } from "vitest";
import { logOf, taskPage } from "./task";

const TASK = { dag_id: "flights", dag_run_id: "scheduled__2026-05-03T10:00:00+00:00", task_id: "clean", try_number: 2 };

describe("the log of a task", () => {
  it("is that of the try", () =>
    expect(logOf({ ...TASK, map_index: -1 })).toBe(
      "/dags/flights/runs/scheduled__2026-05-03T10%3A00%3A00%2B00%3A00/tasks/clean?try_number=2",
    ));
  it("names the map index of a mapped task", () =>
    expect(logOf({ ...TASK, map_index: 0 })).toContain("/tasks/clean/mapped/0?try_number=2"));
});

it("names of tasks stay within their part of the address", () =>
  expect(taskPage("a/b", "c?d")).toBe("/dags/a%2Fb/tasks/c%3Fd"));
