import { describe, expect, it } from "vitest";
import type { GraphNode, GraphRead, Graph as JobGraph } from "../../api/model";
import { boxName, hiddenWords, layOut, nodeRemark, sides } from "./layout";

const node = (name: string, overrides: Partial<GraphNode> = {}): GraphNode => ({
  name,
  kind: "job",
  run_number: 1,
  published: 1,
  is_known: true,
  is_deleted: false,
  is_damaged: false,
  other_names: [],
  ...overrides,
});
const read = (job: string, source: string): GraphRead => ({ job, source, contexts: ["in"], lag: null });
const graph = (names: string[], reads: GraphRead[]): JobGraph => ({
  namespace: "test",
  nodes: names.map((name) => node(name)),
  reads,
  hidden: 0,
});

const CHAIN = graph(["raw", "clean", "report"], [read("clean", "raw"), read("report", "clean")]);

describe("the picture", () => {
  it("runs from left to right with the data", () => {
    const x = Object.fromEntries(layOut(CHAIN).nodes.map((placed) => [placed.node.name, placed.x]));
    expect(x.raw).toBeLessThan(x.clean ?? 0);
    expect(x.clean).toBeLessThan(x.report ?? 0);
  });
  it("draws every read, within its bounds", () => {
    const { width, height, reads } = layOut(CHAIN);
    expect(reads.map((each) => each.path.startsWith("M"))).toEqual([true, true]);
    for (const each of reads) {
      expect(each.x).toBeLessThan(width);
      expect(each.y).toBeLessThan(height);
    }
  });
  it("leaves out a read whose source is hidden", () =>
    expect(layOut(graph(["a"], [read("a", "hidden")])).reads).toEqual([]));
  it("ends for jobs that read each other", () =>
    expect(layOut(graph(["a", "b"], [read("a", "b"), read("b", "a")])).reads).toHaveLength(2));
});

describe("the sides of a job", () => {
  it("are what it depends on, and what depends on it", () => {
    const { upstream, downstream } = sides(CHAIN, "clean");
    expect(upstream.map((place) => place.node.name)).toEqual(["raw"]);
    expect(downstream.map((place) => place.node.name)).toEqual(["report"]);
  });
  it("reach any distance, nearest first", () =>
    expect(sides(CHAIN, "report").upstream.map((place) => place.node.name)).toEqual(["clean", "raw"]));
  it("end in a cycle", () => {
    const round = graph(["a", "b"], [read("a", "b"), read("b", "a")]);
    expect(sides(round, "a").upstream.map((place) => place.node.name)).toEqual(["b"]);
  });
});

it("jobs may be named as objects name their parts", () => {
  const names = ["constructor", "toString", "__proto__"];
  const picture = layOut(graph(names, [read("constructor", "toString"), read("toString", "__proto__")]));
  expect(picture.nodes.map(({ node: { name } }) => name)).toEqual(names);
  expect(picture.reads.every(({ path }) => path !== "")).toBe(true);
});

describe("the name in a box", () => {
  const source = (name: string) => boxName(node(name, { kind: "source" }));
  it("is whole where it fits", () => expect(source("files:/lake/raw/flights")).toBe("files:/lake/raw/flights"));
  it("of a long path is the last segments, whole", () => {
    expect(source("files:/lake/flights.clean/people")).toBe("…/flights.clean/people");
    expect(source("files:s3://company-lake/raw/crm/daily/")).toBe("…/raw/crm/daily/");
  });
  it("of a long last segment is its end", () =>
    expect(source("files:/lake/a_folder_with_a_very_long_name_2026")).toBe("…h_a_very_long_name_2026"));
  it("of a job is all of it", () => {
    const name = "a_dag_with_a_long_name.a_task_with_one";
    expect(boxName(node(name))).toBe(name);
  });
});

it("a node says what is special about it", () => {
  expect(nodeRemark(node("a"))).toBeUndefined();
  expect(nodeRemark(node("a", { is_deleted: true, other_names: ["b"] }))).toBe("also b; deleted");
  expect(nodeRemark(node("a", { is_known: false }))).toBe("no bookmark");
  expect(nodeRemark(node("a", { is_damaged: true, run_number: null }))).toBe("damaged");
});

it("jobs that are not shown are counted", () => {
  expect(hiddenWords(0)).toBeUndefined();
  expect(hiddenWords(1)).toMatch(/^1 more job is part/);
  expect(hiddenWords(2)).toMatch(/^2 more jobs are part/);
});
