import { describe, expect, it } from "vitest";
import { firstField } from "./focus";

// Here is no page: what is asked of it is whether it has such a field.
const bodyWith = (field: object | null) => ({ querySelector: () => field }) as unknown as ParentNode;

describe("the first field of a dialog", () => {
  it("takes the focus", () => {
    const field = {};
    expect(firstField(bodyWith(field))).toBe(field);
  });
  it("is undefined where there is none: null is an error to the focus trap", () =>
    expect(firstField(bodyWith(null))).toBeUndefined());
  it("is undefined once the dialog is gone", () => expect(firstField(null)).toBeUndefined());
});
