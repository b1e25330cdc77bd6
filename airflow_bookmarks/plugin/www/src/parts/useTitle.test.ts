import { expect, it } from "vitest";
import { titleOf } from "./useTitle";

it("the title of a page names its job first, where tabs of a browser cut it off", () =>
  expect(titleOf("flights.clean")).toBe("flights.clean – Bookmarks"));
it("the title of the list is that of the page", () => expect(titleOf(undefined)).toBe("Bookmarks"));
