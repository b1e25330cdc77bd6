import { Graph, layout } from "@dagrejs/dagre";
import { line } from "d3-shape";
import type { GraphNode, GraphRead, Graph as JobGraph } from "../../api/model";

/** A job or a source, placed by its middle. */
export interface PlacedNode {
  node: GraphNode;
  x: number;
  y: number;
}

/** A read, drawn from the source to the job; the label lies at (x, y). */
export interface PlacedRead {
  read: GraphRead;
  key: string;
  path: string;
  x: number;
  y: number;
}

/** The whole picture, in pixels. */
export interface Picture {
  width: number;
  height: number;
  nodes: PlacedNode[];
  reads: PlacedRead[];
}

export const NODE = { width: 210, height: 58 };
const BADGE = { width: 96, height: 24 };
const MARGIN = 16;

// dagre keeps nodes in plain objects, where a job named "constructor" is something else.
function idOf(name: string): string {
  return `n:${name}`;
}

/** Lay a graph out in the direction of the data, from left to right. */
export function layOut(graph: JobGraph): Picture {
  const plane = new Graph({ multigraph: true });
  plane.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 36, marginx: MARGIN, marginy: MARGIN });
  for (const node of graph.nodes) plane.setNode(idOf(node.name), { ...NODE });
  const reads = graph.reads.filter((read) => plane.hasNode(idOf(read.job)) && plane.hasNode(idOf(read.source)));
  for (const read of reads)
    plane.setEdge(idOf(read.source), idOf(read.job), { ...(read.lag ? BADGE : {}), labelpos: "c" });
  layout(plane);
  const { width = 0, height = 0 } = plane.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: graph.nodes.map((node) => ({ node, ...placeOf(plane.node(idOf(node.name))) })),
    reads: reads.map((read) => placed(read, plane.edge(idOf(read.source), idOf(read.job)))),
  };
}

interface Way {
  points?: { x: number; y: number }[];
  x?: number;
  y?: number;
}

const curve = line<{ x: number; y: number }>(
  (point) => point.x,
  (point) => point.y,
);

function placed(read: GraphRead, way: Way): PlacedRead {
  const points = way.points ?? [];
  const middle = points[Math.floor(points.length / 2)];
  return {
    read,
    key: keyOfRead(read),
    path: curve(points) ?? "",
    x: way.x ?? middle?.x ?? 0,
    y: way.y ?? middle?.y ?? 0,
  };
}

function placeOf(node: { x?: number; y?: number }): { x: number; y: number } {
  return { x: node.x ?? 0, y: node.y ?? 0 };
}

/** The name of a read in lists. */
export function keyOfRead(read: GraphRead): string {
  return JSON.stringify([read.source, read.job]);
}

/** A job or source as seen from one job: how many reads away, upstream or downstream. */
export interface Place {
  node: GraphNode;
  reads: GraphRead[];
}

/** Return what a job depends on (nearest first), and what depends on it, at any distance. */
export function sides(graph: JobGraph, job: string): { upstream: Place[]; downstream: Place[] } {
  return {
    upstream: walk(graph, job, (read) => [read.job, read.source]),
    downstream: walk(graph, job, (read) => [read.source, read.job]),
  };
}

function walk(graph: JobGraph, start: string, step: (read: GraphRead) => [string, string]): Place[] {
  const nodes = new Map(graph.nodes.map((node) => [node.name, node]));
  const found = new Map<string, Place>();
  let edge = new Set([start]);
  while (edge.size > 0) {
    const next = new Set<string>();
    for (const read of graph.reads) {
      const [from, to] = step(read);
      const node = nodes.get(to);
      if (!edge.has(from) || node === undefined || to === start) continue;
      const known = found.get(to);
      if (known) known.reads.push(read);
      else {
        found.set(to, { node, reads: [read] });
        next.add(to);
      }
    }
    edge = next;
  }
  return [...found.values()];
}

// So many letters fit in a box.
const MOST_LETTERS = 24;

/** Name a node in its box. A long source is named by the last segments of its path, which tell it from others. */
export function boxName({ kind, name }: GraphNode): string {
  const letters = [...name];
  if (kind === "job" || letters.length <= MOST_LETTERS) return name;
  const end = letters.slice(1 - MOST_LETTERS).join("");
  const segment = end.search(/\/[^/]/);
  return `…${segment < 0 ? end : end.slice(segment)}`;
}

/** Say what is special about a node: "also old_name; deleted". Undefined for most. */
export function nodeRemark(node: GraphNode): string | undefined {
  const said: string[] = [];
  if (node.other_names.length > 0) said.push(`also ${node.other_names.join(", ")}`);
  if (node.is_deleted) said.push("deleted");
  if (node.is_damaged) said.push("damaged");
  if (!node.is_known) said.push("no bookmark");
  return said.length > 0 ? said.join("; ") : undefined;
}

/** Say how many jobs are left out; undefined where none is. */
export function hiddenWords(hidden: number): string | undefined {
  if (hidden === 0) return undefined;
  const jobs = hidden === 1 ? "1 more job is" : `${hidden} more jobs are`;
  return `${jobs} part of this graph but not shown, because you don't have access to ${hidden === 1 ? "it" : "them"}.`;
}
