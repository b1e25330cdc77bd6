import { describe, expect, it } from "vitest";
import { addressWith, directionOf, isFiltered, listQueryOf, missing, queryOf, sortAfterClick } from "./listQuery";

const ORDINARY = { search: "", health: undefined, state: undefined, sort: "health", page: 1, limit: 50 };
const address = (text: string) => new URLSearchParams(text);

describe("an address", () => {
  it("that says nothing asks for the first page by name", () => expect(listQueryOf(address(""))).toEqual(ORDINARY));
  it("is read in full", () =>
    expect(listQueryOf(address("search=a+b&health=TAKEN+BACK&state=DUE&sort=-epoch&page=3&limit=25"))).toEqual({
      search: "a b",
      health: "TAKEN BACK",
      state: "DUE",
      sort: "-epoch",
      page: 3,
      limit: 25,
    }));
  it.each([
    "state=LOST",
    "sort=lag",
    "sort=--job",
    "page=0",
    "page=-1",
    "page=1.5",
    "page=x",
    "page=99999999999",
    "limit=7",
    "limit=1e9",
  ])("that says what there is not (%s) counts as silent", (text) =>
    expect(listQueryOf(address(text))).toEqual(ORDINARY),
  );
  it("asks for no longer search than the API takes", () =>
    expect(listQueryOf(address(`search=${"x".repeat(300)}`)).search).toHaveLength(250));
});

describe("a change of the list", () => {
  it("begins at the first page", () =>
    expect(addressWith(address("page=7&sort=-epoch"), { state: "DUE" }).toString()).toBe("sort=-epoch&state=DUE"));
  it("leaves the rest of the address alone", () =>
    expect(addressWith(address("tab=files"), { page: 2 }).toString()).toBe("tab=files&page=2"));
  it("to what is ordinary is not said", () =>
    expect(addressWith(address("search=x&state=DUE&page=2&limit=25"), ORDINARY as never).toString()).toBe(""));
});

describe("the API", () => {
  it("is asked by offset", () =>
    expect(queryOf(listQueryOf(address("page=3&limit=25")))).toEqual({
      sort: "health",
      limit: 25,
      offset: 50,
      counts: true,
    }));
  it("is not asked for blanks", () => expect(queryOf(listQueryOf(address("search=+++"))).search).toBeUndefined());
  it("is told a health, and asked how many jobs have each", () =>
    expect(queryOf(listQueryOf(address("health=LATE")))).toMatchObject({ health: "LATE", counts: true }));
  it("is told a state", () => expect(queryOf(listQueryOf(address("state=NEW"))).state).toBe("NEW"));
});

describe("a list", () => {
  it("is filtered by words or a state", () =>
    expect(["", "search=+", "search=x", "state=NEW"].map((text) => isFiltered(listQueryOf(address(text))))).toEqual([
      false,
      false,
      true,
      true,
    ]));
});

describe("a list that is empty", () => {
  it.each([
    ["search=+x+", "No jobs with “x” in the name, DAG or task."],
    ["state=DUE", "No DUE jobs."],
    ["state=DUE&health=LATE", "No LATE, DUE jobs."],
    ["state=DUE&search=x", "No DUE jobs with “x” in the name, DAG or task."],
  ])("says what was asked for (%s)", (text, words) => expect(missing(listQueryOf(address(text)))).toBe(words));
});

describe("the head of a column", () => {
  it("sorts names from A on, and the newest first", () =>
    expect([sortAfterClick("dag_id", "job"), sortAfterClick("last_commit_at", "job")]).toEqual([
      "dag_id",
      "-last_commit_at",
    ]));
  it("turns what it has sorted", () =>
    expect([sortAfterClick("job", "job"), sortAfterClick("job", "-job"), sortAfterClick("epoch", "-epoch")]).toEqual([
      "-job",
      "job",
      "epoch",
    ]));
  it("says which way", () =>
    expect([directionOf("job", "job"), directionOf("job", "-job"), directionOf("job", "epoch")]).toEqual([
      "ascending",
      "descending",
      undefined,
    ]));
});
