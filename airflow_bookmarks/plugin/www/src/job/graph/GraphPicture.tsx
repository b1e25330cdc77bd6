import { Box, chakra } from "@chakra-ui/react";
import { useEffect, useId, useMemo, useRef } from "react";
import type { Graph } from "../../api/model";
import { StateBadge } from "../../parts/StateBadge";
import { GraphBox } from "./GraphBox";
import { layOut, NODE, type PlacedRead } from "./layout";

/** Jobs and sources as boxes, reads as arrows between them. It scrolls in its own box. */
export function GraphPicture({ job, graph }: { job: string; graph: Graph }) {
  const picture = useMemo(() => layOut(graph), [graph]);
  const box = useRef<HTMLDivElement>(null);
  const own = picture.nodes.find((placed) => placed.node.name === job);
  // A wide graph opens at the job that it is about.
  useEffect(() => {
    const element = box.current;
    if (element && own) element.scrollLeft = own.x - element.clientWidth / 2;
  }, [own]);
  return (
    <Box ref={box} borderWidth="1px" borderRadius="md" overflow="auto" maxH="70vh" bg="bg.subtle" display="flex">
      <Box position="relative" width={`${picture.width}px`} height={`${picture.height}px`} flexShrink={0} mx="auto">
        <Arrows width={picture.width} height={picture.height} reads={picture.reads} />
        {picture.reads.map((placed) => (
          <Badge key={placed.key} placed={placed} />
        ))}
        {picture.nodes.map(({ node, x, y }) => (
          <Box
            key={node.name}
            position="absolute"
            left={`${x - NODE.width / 2}px`}
            top={`${y - NODE.height / 2}px`}
            width={`${NODE.width}px`}
            height={`${NODE.height}px`}
          >
            <GraphBox node={node} isOwn={node.name === job} />
          </Box>
        ))}
      </Box>
    </Box>
  );
}

function Arrows({ width, height, reads }: { width: number; height: number; reads: readonly PlacedRead[] }) {
  const id = useId();
  const label = `${reads.length} reads between jobs and sources; also listed below`;
  return (
    <svg width={width} height={height} role="img" aria-label={label} style={{ position: "absolute", inset: 0 }}>
      <defs>
        <Tip id={`${id}-plain`} color="fg.subtle" />
        <Tip id={`${id}-rewound`} color="purple.solid" />
      </defs>
      {reads.map(({ key, path, read }) => {
        const isRewound = read.lag?.state === "REWOUND";
        return (
          <chakra.path
            key={key}
            d={path}
            fill="none"
            stroke={isRewound ? "purple.solid" : "fg.subtle"}
            strokeWidth={isRewound ? 2.5 : 1.5}
            strokeDasharray={isRewound ? "7 4" : undefined}
            markerEnd={`url(#${id}-${isRewound ? "rewound" : "plain"})`}
          />
        );
      })}
    </svg>
  );
}

function Tip({ id, color }: { id: string; color: string }) {
  return (
    <marker
      id={id}
      viewBox="0 0 8 8"
      refX={8}
      refY={4}
      markerWidth={8}
      markerHeight={8}
      markerUnits="userSpaceOnUse"
      orient="auto"
    >
      <chakra.path d="M0 0 L8 4 L0 8 Z" fill={color} />
    </marker>
  );
}

function Badge({ placed }: { placed: PlacedRead }) {
  const { read, x, y } = placed;
  if (!read.lag) return null;
  return (
    <Box
      position="absolute"
      left={`${x}px`}
      top={`${y}px`}
      transform="translate(-50%, -50%)"
      bg="bg.subtle"
      title={read.lag.why ?? undefined}
    >
      <StateBadge state={read.lag.state} />
    </Box>
  );
}
