import { describe, expect, it } from "vitest";
import { isRewound } from "./rewound";

describe("a consumer", () => {
  const job = { data_run_number: 20, epoch: 2 };
  it("that has read what was undone is rewound", () => expect(isRewound({ run_number: 25, epoch: 1 }, job)).toBe(true));
  it("that has not read so far is not", () => expect(isRewound({ run_number: 20, epoch: 1 }, job)).toBe(false));
  it("that has seen the job go back is not", () => expect(isRewound({ run_number: 25, epoch: 2 }, job)).toBe(false));
  it("of a job of which nothing is known is not", () =>
    expect(isRewound({ run_number: 25, epoch: 1 }, {})).toBe(false));
});
