import { viewOf } from "../parts/Views";

/** The tabs of a job's page, in their order; the address names them. */
export const TABS = ["overview", "runs", "charts", "events", "graph"] as const;
export type Tab = (typeof TABS)[number];

// What belongs to one tab alone, and is left behind with it.
const OF_ONE_TAB = ["run", "page"];

/** Return the tab that an address asks for; the first one where it names none that there is. */
export function tabOf(search: URLSearchParams): Tab {
  const requested = search.get("tab");
  return TABS.find((tab) => tab === requested) ?? "overview";
}

/** Return the address of another tab of the same job. */
export function withTab(search: URLSearchParams, tab: string): URLSearchParams {
  const next = without(search, OF_ONE_TAB);
  if (tab === "overview") next.delete("tab");
  else next.set("tab", tab);
  return next;
}

/** Return an address with one part of it changed; undefined takes the part away. */
export function withPart(search: URLSearchParams, name: string, value: string | undefined): URLSearchParams {
  const next = without(search, [name]);
  if (value !== undefined) next.set(name, value);
  return next;
}

/** Return the address of the list that one came from, as it was left. */
export function backToList(search: URLSearchParams): string {
  const from = search.get("from");
  return from ? `?${from}` : "?";
}

/** Name the list that one came from. */
export function nameOfList(search: URLSearchParams): string {
  return viewOf(new URLSearchParams(search.get("from") ?? "")) === "requests" ? "All requests" : "All jobs";
}

function without(search: URLSearchParams, names: readonly string[]): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const name of names) next.delete(name);
  return next;
}
