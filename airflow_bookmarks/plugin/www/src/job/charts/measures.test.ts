import { describe, expect, it } from "vitest";
import type { RunRow } from "../../api/model";
import { sample } from "../runs/sample";
import { lagOf, measuresOf } from "./measures";

const ids = (runs: RunRow[], contexts: string[] = ["flights"], ctx?: string) =>
  measuresOf(runs, contexts, ctx).map((each) => each.id);
const values = (run: RunRow, contexts: string[] = ["flights"], ctx?: string) =>
  Object.fromEntries(measuresOf([run], contexts, ctx).map((each) => [each.id, each.value(run)]));

describe("lag", () => {
  it("is how old the newest data was at the commit", () => expect(lagOf(sample(1), "flights")).toBe(3 * 3600));
  it("is not known where the watermark is no time by its order", () => {
    expect(lagOf(sample(1, { order: { flights: "path" } }), "flights")).toBeNull();
    expect(lagOf(sample(1, { order: { flights: null } }), "flights")).toBeNull();
    expect(lagOf(sample(1, { order: {} }), "flights")).toBeNull();
    expect(lagOf(sample(1, { committed_at: null }), "flights")).toBeNull();
  });
  it("is charted over time, for each context alone", () => {
    const lags = measuresOf([sample(1)], ["flights", "people"], undefined).filter((each) => each.isByTime);
    expect(lags.map((each) => each.title)).toEqual(["Lag of flights", "Lag of people"]);
    expect(ids([sample(1)], [])).not.toContain("lag");
  });
});

describe("what is charted", () => {
  const table = sample(1, { rows: null, files: null, bytes: null, amounts: { rows: 7 } });
  const queue = sample(2, { rows: null, files: null, bytes: null, amounts: { messages: 4 } });

  it("is what was read, how long that took, and how fast it was", () => {
    expect(ids([sample(1)])).toEqual([
      "rows",
      "bytes",
      "files",
      "duration",
      "rows-per-second",
      "bytes-per-second",
      "lag",
    ]);
    expect(values(sample(36))).toMatchObject({ duration: 3600, "rows-per-second": 0.1, "bytes-per-second": 10 });
  });
  it("is what was written where that was counted", () =>
    expect(values(sample(1, { rows_written: 5 }))["rows-written"]).toBe(5));
  it("are the rows of a table by its plan, and no files", () => {
    expect(ids([table])).toEqual(["rows", "duration", "rows-per-second", "lag"]);
    expect(values(table).rows).toBe(7);
  });
  it("has what another kind of source counts by its name", () => {
    expect(
      measuresOf([queue, sample(1)], [], undefined)
        .map((each) => each.title)
        .slice(0, 4),
    ).toEqual(["Rows read", "Bytes read", "Files read", "Messages read"]);
    expect(values(queue)).toMatchObject({ rows: null, "unit-messages": 4 });
  });
  it("has no speed of a run that read nothing", () =>
    expect(values(sample(1, { rows: 0, bytes: 0 }))).not.toHaveProperty("rows-per-second"));
});

it("of counts and times what differs by one is usual", () =>
  expect(
    measuresOf([sample(1)], ["flights"], undefined)
      .filter((each) => each.least === 1)
      .map((each) => each.id),
  ).toEqual(["rows", "files", "duration", "lag"]));

describe("of one context of several", () => {
  const contexts = ["flights", "people"];
  const run = sample(1, {
    rows: 100,
    contexts: { flights: { files: 2, bytes: 20, rows: 93 }, people: { unit: "rows", count: 7 } },
  });

  it("is charted what it read", () => {
    expect(values(run, contexts, "flights")).toMatchObject({ rows: 93, bytes: 20, files: 2 });
    expect(values(run, contexts, "people")).toMatchObject({ rows: 7 });
    expect(ids([run], contexts, "people")).not.toContain("files");
  });
  it("is said that it is one, or all", () => {
    const hint = (ctx?: string) => measuresOf([run], contexts, ctx)[0]?.hint;
    expect(hint("people")).toContain("in context people");
    expect(hint()).toContain("in all contexts");
  });
});
