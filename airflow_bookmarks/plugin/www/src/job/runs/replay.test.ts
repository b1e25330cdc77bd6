import { expect, it } from "vitest";
import { mayBeReplayed, replayCommand } from "./replay";

it("what is published can be replayed, and nothing else", () => {
  const states = ["PUBLISHED", "COMMITTED", "FAILED", "UNDONE", "ABANDONED", "PLANNED", "DAMAGED"];
  expect(states.filter((state) => mayBeReplayed({ state }))).toEqual(["PUBLISHED"]);
});

it.each([
  ["flights.clean", "airflow-bookmarks replay --run 7 flights.clean"],
  ["航班.清洗", "airflow-bookmarks replay --run 7 '航班.清洗'"],
  ["~a", "airflow-bookmarks replay --run 7 '~a'"],
  ["-_~a", "airflow-bookmarks replay --run 7 -- '-_~a'"],
])("the command names the job as a shell takes it: %s", (job, command) =>
  expect(replayCommand(job, { number: 7 })).toBe(command),
);
