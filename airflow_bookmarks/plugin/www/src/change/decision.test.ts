import { describe, expect, it } from "vitest";
import type { RequestRow } from "../api/model";
import { decisionOf, isWaiting } from "./decision";

function request(state: string, may_approve: boolean): RequestRow {
  return {
    id: "1",
    state,
    job: "clean",
    change: { kind: "undo" },
    who: "ada",
    why: "wrong",
    made_at: "2026-05-03T00:00:00Z",
    valid_until: "2026-05-10T00:00:00Z",
    version: 1,
    preview: {},
    decided_by: null,
    may_approve,
  };
}

describe("a request", () => {
  it("of somebody else can be approved and rejected", () =>
    expect(decisionOf({ may_change: true }, request("open", true))).toEqual({
      mayApprove: true,
      mayReject: true,
      approve: "Approve",
      reject: "Reject",
      why: undefined,
    }));
  it("of one's own can be withdrawn alone", () =>
    expect(decisionOf({ may_change: true }, request("open", false))).toMatchObject({
      mayApprove: false,
      mayReject: true,
      reject: "Withdraw",
      why: "You requested this; someone else must approve it.",
    }));
  it("can't be decided by who may not change the job", () =>
    expect(decisionOf({ may_change: false }, request("open", false))).toMatchObject({
      mayApprove: false,
      mayReject: false,
    }));
  it("that was approved and not applied waits still", () => {
    expect(isWaiting(request("approved", true))).toBe(true);
    expect(decisionOf({ may_change: true }, request("approved", true)).approve).toBe("Apply");
  });
  it.each(["done", "rejected", "expired", "void"])("that is %s is nobody's to decide", (state) => {
    expect(isWaiting(request(state, false))).toBe(false);
    expect(decisionOf({ may_change: true }, request(state, false))).toMatchObject({
      mayApprove: false,
      mayReject: false,
    });
  });
});
