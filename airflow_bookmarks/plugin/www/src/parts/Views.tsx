import { HStack, Link } from "@chakra-ui/react";
import { Link as RouterLink } from "react-router-dom";

/** The lists of the page; the address names which one is shown. */
export const VIEWS = {
  jobs: { title: "Jobs", search: "?" },
  requests: { title: "Requests", search: "?view=requests" },
};
export type View = keyof typeof VIEWS;

/** Return the list that an address asks for. */
export function viewOf(search: URLSearchParams): View {
  return search.get("view") === "requests" ? "requests" : "jobs";
}

/** Links between the lists of the page. */
export function Views({ current }: { current: View }) {
  return (
    <HStack as="nav" aria-label="Lists" gap={4} fontSize="sm">
      {(Object.keys(VIEWS) as View[]).map((view) => (
        <Link
          key={view}
          asChild
          colorPalette="blue"
          fontWeight={view === current ? "semibold" : "normal"}
          {...(view === current ? { "aria-current": "page" } : {})}
        >
          <RouterLink to={{ search: VIEWS[view].search }}>{VIEWS[view].title}</RouterLink>
        </Link>
      ))}
    </HStack>
  );
}
