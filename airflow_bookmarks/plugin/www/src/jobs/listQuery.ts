import type { JobRow } from "../api/model";
import type { JobsQuery } from "../api/queries";

export type State = JobRow["state"];
export type Health = NonNullable<JobRow["health"]>["state"];
export type Sort = NonNullable<JobsQuery["sort"]>;
export type Column = Exclude<Sort, `-${string}`>;

/** What the address asks of the list of jobs. Pages count from 1. */
export interface ListQuery {
  search: string;
  health: Health | undefined;
  state: State | undefined;
  sort: Sort;
  page: number;
  limit: number;
}

export const STATES: readonly State[] = ["NEW", "IDLE", "RUNNING", "EXPIRED", "DUE", "DAMAGED"];
/** The worst first, as the list is sorted. */
export const HEALTHS: readonly Health[] = [
  "FAILED",
  "STUCK",
  "LATE",
  "REWOUND",
  "LAGGING",
  "WAITING",
  "PAUSED",
  "TAKEN BACK",
  "OK",
  "NEW",
];
export const LIMITS: readonly number[] = [25, 50, 100];
/** As many letters as the API takes. */
export const LONGEST_SEARCH = 250;

// Which way a column is sorted first: names from A on; of what grows, the newest and the most.
const FIRST: Record<Column, Sort> = {
  health: "health",
  job: "job",
  dag_id: "dag_id",
  state: "state",
  last_commit_at: "-last_commit_at",
  run_number: "-run_number",
  epoch: "-epoch",
};
const SORTS = Object.keys(FIRST).flatMap((column) => [column, `-${column}`]);
const ORDINARY: Sort = "health";
const LIMIT = 50;
const LAST_PAGE = 1_000_000;

/** Read what an address asks for. What it says that there is not counts as not said. */
export function listQueryOf(address: URLSearchParams): ListQuery {
  const sort = address.get("sort");
  const health = HEALTHS.find((each) => each === address.get("health"));
  const state = STATES.find((each) => each === address.get("state"));
  const limit = Number(address.get("limit"));
  return {
    // By characters: half of an emoji can't be sent.
    search: [...(address.get("search") ?? "")].slice(0, LONGEST_SEARCH).join(""),
    health,
    state,
    sort: sort !== null && SORTS.includes(sort) ? (sort as Sort) : ORDINARY,
    page: pageOf(address.get("page")),
    limit: LIMITS.includes(limit) ? limit : LIMIT,
  };
}

/** Return an address that asks for something else too. Another list begins at its first page. */
export function addressWith(address: URLSearchParams, change: Partial<ListQuery>): URLSearchParams {
  const listQuery: ListQuery = { ...listQueryOf(address), page: 1, ...change };
  const next = new URLSearchParams(address);
  put(next, "search", listQuery.search, "");
  put(next, "health", listQuery.health ?? "", "");
  put(next, "state", listQuery.state ?? "", "");
  put(next, "sort", listQuery.sort, ORDINARY);
  put(next, "page", String(listQuery.page), "1");
  put(next, "limit", String(listQuery.limit), String(LIMIT));
  return next;
}

/** Return what to ask of the API. */
export function queryOf({ search, health, state, sort, page, limit }: ListQuery): JobsQuery {
  const needle = search.trim();
  return {
    sort,
    limit,
    offset: offsetOf(page, limit),
    counts: true,
    ...(needle === "" ? {} : { search: needle }),
    ...(health === undefined ? {} : { health }),
    ...(state === undefined ? {} : { state }),
  };
}

/** Return how many jobs come before a page. */
export function offsetOf(page: number, limit: number): number {
  return (page - 1) * limit;
}

/** Say whether only a part of the jobs is asked for. */
export function isFiltered({ search, health, state }: ListQuery): boolean {
  return search.trim() !== "" || health !== undefined || state !== undefined;
}

/** Say what no job is, where none is what was asked for. */
export function missing({ search, health, state }: ListQuery): string {
  const needle = search.trim();
  const wanted = [health, state].filter((each) => each !== undefined).join(", ");
  const which = wanted === "" ? "No jobs" : `No ${wanted} jobs`;
  return needle === "" ? `${which}.` : `${which} with “${needle}” in the name, DAG or task.`;
}

/** Return how the list is sorted after a click on the head of a column. */
export function sortAfterClick(column: Column, now: Sort): Sort {
  if (directionOf(column, now) === undefined) return FIRST[column];
  return now === column ? `-${column}` : column;
}

/** Return which way a column is sorted now, undefined where the list is sorted by another. */
export function directionOf(column: Column, now: Sort): "ascending" | "descending" | undefined {
  if (now === column) return "ascending";
  return now === `-${column}` ? "descending" : undefined;
}

function pageOf(text: string | null): number {
  const page = Number(text ?? 1);
  return Number.isInteger(page) && page >= 1 && page <= LAST_PAGE ? page : 1;
}

function put(address: URLSearchParams, name: string, value: string, ordinary: string): void {
  if (value === ordinary) address.delete(name);
  else address.set(name, value);
}
