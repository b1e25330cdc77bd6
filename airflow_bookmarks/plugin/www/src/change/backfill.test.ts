import { describe, expect, it } from "vitest";
import type { BackfillPreview, BackfillStep } from "../api/model";
import {
  backfillBody,
  backfillFactsOf,
  backfillName,
  backfillSpecOf,
  becauseInWords,
  lacksOf,
  priceOf,
  whereInWords,
} from "./backfill";

const DRAFT = { isFromStart: false, to: " 2 ", clean: true, leave: ["mail"], keep: ["prices"], force: false };

const step = (job: string, more: Partial<BackfillStep> = {}): BackfillStep => ({
  job,
  dag_id: "shop",
  task_id: job,
  change: "rewind",
  to_run: 2,
  clean: true,
  because: {},
  refused: null,
  stands: false,
  is_root: false,
  doubts: [],
  seconds: 60,
  undone_run_count: 2,
  read_again: { files: 2, bytes: 10, rows: null, amounts: {} },
  state: {},
  files_to_clean: 2,
  outputs_to_clean: 0,
  written_twice: [],
  holder: null,
  ...more,
});

const plan = (steps: BackfillStep[], more: Partial<BackfillPreview> = {}): BackfillPreview => ({
  job: "clean",
  steps,
  refused_jobs: 0,
  undone_run_count: 4,
  read_again: { files: 4, bytes: 20, rows: null, amounts: {} },
  files_to_clean: 4,
  outputs_to_clean: 0,
  seconds: 120,
  unaffected: [],
  left_out: [],
  dag_runs: [
    { dag_id: "shop", jobs: ["clean"], is_here: true },
    { dag_id: "abroad", jobs: ["copy"], is_here: false },
    { dag_id: null, jobs: ["mail"], is_here: false },
  ],
  versions: { clean: 4 },
  ...more,
});

describe("a backfill", () => {
  it("goes to a point, or to before the first run", () => {
    expect(backfillSpecOf(DRAFT)).toEqual({
      value: { to: "2", clean: true, leave: ["mail"], keep: ["prices"], force: false },
    });
    expect(backfillSpecOf({ ...DRAFT, isFromStart: true })).toMatchObject({ value: { to: null } });
    expect(backfillSpecOf({ ...DRAFT, to: " " })).toEqual({ lacks: "the last run to keep" });
  });

  it("keeps no output apart where none is removed", () => {
    expect(backfillSpecOf({ ...DRAFT, clean: false })).toMatchObject({ value: { keep: [] } });
  });

  it("is made by the versions that were looked at", () => {
    const spec = { to: "2", clean: true, leave: [], keep: [], force: false };
    const sure = { reason: " bad delivery ", typed: "clean", force: false };
    expect(backfillBody(spec, "clean", sure, plan([step("clean")]))).toEqual({
      ...spec,
      reason: "bad delivery",
      confirm: "clean",
      expected_versions: { clean: 4 },
    });
  });

  it("is named by how many jobs move", () => {
    expect(backfillName(undefined)).toBe("Backfill");
    expect(backfillName(plan([step("clean", { stands: true }), step("mail")]))).toBe("Take 1 job back");
  });

  it("is not made while a job can't go back, or none has to", () => {
    expect(lacksOf(plan([step("clean"), step("mail")]))).toEqual([]);
    expect(lacksOf(plan([step("clean"), step("mail", { refused: "is protected" })]))).toEqual([
      "a decision on mail, which can't go back",
    ]);
    expect(lacksOf(plan([step("clean", { stands: true })]))).toEqual(["a job that has to go back"]);
  });
});

describe("a plan", () => {
  it("says its sums, what stays, and what to trigger", () => {
    const facts = backfillFactsOf(plan([step("clean")], { unaffected: ["other"], left_out: ["mail"] }));
    expect(facts.map(({ label, says }) => `${label}: ${says}`)).toEqual([
      "Jobs: 1 job",
      "Runs undone: 4 runs",
      "Read again: 4 files, 20 B, rows not counted",
      "Expected time: 2 min",
      "Removed: 4 files, by the next runs. This can't be undone.",
      "Then trigger, in this order: shop, abroad",
      "In another Airflow: copy",
      "Then run manually: mail",
    ]);
    expect(facts[0]?.note).toBe("unaffected: other; left out: mail");
  });

  it("says what its runs cost, where a price is given and the time of each is known", () => {
    const cost = (steps: BackfillStep[], price: string) =>
      backfillFactsOf(plan(steps), priceOf(price)).find(({ label }) => label === "Expected cost")?.says;
    const steps = [step("clean", { seconds: 1800 }), step("mail", { seconds: 900 }), step("old", { stands: true })];
    expect(cost(steps, "1,20")).toBe("0.90");
    expect(cost([...steps, step("new", { seconds: null })], "1.2")).toBe("unknown");
    expect([cost(steps, ""), cost(steps, "much"), cost(steps, "-1")]).toEqual([undefined, undefined, undefined]);
  });

  it("says where each job goes back to, and why", () => {
    expect(whereInWords(step("clean"))).toBe("run 2");
    expect(whereInWords(step("clean", { to_run: null, stands: true }))).toBe("before its first run: already there");
    expect(becauseInWords(step("clean", { is_root: true }))).toBe("requested");
    expect(becauseInWords(step("mail"))).toBe("output of undone runs");
    expect(becauseInWords(step("mail", { because: { report: 2 } }))).toBe("report (up to run 2)");
  });
});
