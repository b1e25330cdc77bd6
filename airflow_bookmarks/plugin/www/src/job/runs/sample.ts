import type { RunRow } from "../../api/model";

/** Return a run of one hour of files, for tests: published, unless told otherwise. */
export function sample(number: number, overrides: Partial<RunRow> = {}): RunRow {
  const hour = (value: number) => new Date(Date.UTC(2026, 4, 3, value)).toISOString();
  return {
    number,
    fence: number,
    state: "PUBLISHED",
    epoch: 1,
    revision: 0,
    run_id: `flights/manual__${number}/clean`,
    attempt: 1,
    option: "enable",
    is_empty: false,
    files: number,
    bytes: 1000 * number,
    rows: 10 * number,
    planned_at: hour(number + 2),
    committed_at: hour(number + 3),
    published_at: hour(number + 3),
    window: { flights: { before: hour(number - 1), after: hour(number) } },
    watermark: { flights: hour(number) },
    order: { flights: "time" },
    seconds: {},
    amounts: {},
    contexts: {},
    outputs: {},
    left_out: {},
    ...overrides,
  };
}
