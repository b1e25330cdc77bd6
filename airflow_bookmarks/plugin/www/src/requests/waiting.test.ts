import { describe, expect, it } from "vitest";
import { viewOf } from "../parts/Views";
import { dutyOf, pageOf, withPage } from "./waiting";

const at = (text: string) => new URLSearchParams(text);

describe("the address of the requests", () => {
  it("names the list", () => {
    expect(viewOf(at("view=requests"))).toBe("requests");
    expect(viewOf(at("view=nonsense"))).toBe("jobs");
    expect(viewOf(at(""))).toBe("jobs");
  });
  it("names a page", () => {
    expect(pageOf(at("page=3&limit=50"))).toEqual({ page: 3, limit: 50 });
    expect(pageOf(at("page=-1&limit=7"))).toEqual({ page: 1, limit: 25 });
  });
  it("does not name what is ordinary", () => {
    expect(withPage(at("view=requests&page=3&limit=50"), 1, 25).toString()).toBe("view=requests");
    expect(withPage(at("view=requests"), 2, 50).toString()).toBe("view=requests&page=2&limit=50");
  });
});

it("what one may do about a request is told", () => {
  const request = { id: "1", job: "a", dag_id: null, change: {}, who: "ann", why: "", made_at: "", valid_until: "" };
  expect(dutyOf({ ...request, may_change: true, may_approve: true })).toBe("can approve");
  expect(dutyOf({ ...request, may_change: true, may_approve: false })).toBe("can withdraw");
  expect(dutyOf({ ...request, may_change: false, may_approve: false })).toBe("can view");
});
