import { describe, expect, it } from "vitest";
import { backToList, nameOfList, tabOf, withPart, withTab } from "./address";

const at = (text: string) => new URLSearchParams(text);

describe("the address of a job", () => {
  it("names its tab", () => expect(tabOf(at("job=a&tab=runs"))).toBe("runs"));
  it.each(["job=a", "job=a&tab=nonsense"])("shows the overview without one: %s", (text) =>
    expect(tabOf(at(text))).toBe("overview"),
  );
  it("leaves an open run and a page behind with their tab", () =>
    expect(withTab(at("job=a&tab=runs&run=7.9&page=2&ctx=b"), "charts").toString()).toBe("job=a&tab=charts&ctx=b"));
  it("does not name the first tab", () => expect(withTab(at("job=a&tab=runs"), "overview").toString()).toBe("job=a"));
  it("changes one part and keeps the others", () => {
    expect(withPart(at("job=a&ctx=b"), "ctx", "c").toString()).toBe("job=a&ctx=c");
    expect(withPart(at("job=a&ctx=b"), "ctx", undefined).toString()).toBe("job=a");
  });
  it("keeps the list that one came from", () => {
    expect(backToList(at("job=a&from=state%3DDUE%26page%3D2"))).toBe("?state=DUE&page=2");
    expect(backToList(at("job=a"))).toBe("?");
    expect(nameOfList(at("job=a&from=view%3Drequests"))).toBe("All requests");
    expect(nameOfList(at("job=a&from=state%3DDUE"))).toBe("All jobs");
  });
});
