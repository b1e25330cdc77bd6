import { useEffect } from "react";

/** Return what the browser shows as the title of a page. */
export function titleOf(what: string | undefined): string {
  return what === undefined ? "Bookmarks" : `${what} – Bookmarks`;
}

/** Name the page by what it shows, for as long as it is there; then the title is again what it was. */
export function useTitle(what: string | undefined): void {
  useEffect(() => {
    const before = document.title;
    document.title = titleOf(what);
    return () => {
      document.title = before;
    };
  }, [what]);
}
