import type { WaitingRequest } from "../api/model";

export const LIMITS: readonly number[] = [25, 50];

/** Return the page that an address asks for, from 1, and how many jobs are on one. */
export function pageOf(address: URLSearchParams): { page: number; limit: number } {
  const page = Number(address.get("page") ?? 1);
  const limit = Number(address.get("limit"));
  return {
    page: Number.isInteger(page) && page >= 1 && page <= 1_000_000 ? page : 1,
    limit: LIMITS.includes(limit) ? limit : 25,
  };
}

/** Return the address of another page of the requests. */
export function withPage(address: URLSearchParams, page: number, limit: number): URLSearchParams {
  const next = new URLSearchParams(address);
  if (page === 1) next.delete("page");
  else next.set("page", String(page));
  if (limit === LIMITS[0]) next.delete("limit");
  else next.set("limit", String(limit));
  return next;
}

/** Say what the user may do about a request. */
export function dutyOf({ may_approve, may_change }: WaitingRequest): string {
  if (may_approve) return "can approve";
  return may_change ? "can withdraw" : "can view";
}
