import { Box, Flex, Text } from "@chakra-ui/react";
import { type KeyboardEvent, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import type { RunRow } from "../../api/model";
import { useWidth } from "../../parts/useWidth";
import { useZone } from "../../words/zone";
import { TimelineAxis } from "./TimelineAxis";
import { place } from "./TimelineBar";
import { NAME, TimelineRow } from "./TimelineRow";
import { type Axis, axisOf, type Bar, barsOf, newestEnd, rowAfter } from "./timeline";

interface TimelineProps {
  runs: readonly RunRow[];
  ctx: string | undefined;
  onOpen: (run: RunRow) => void;
  mayRewind: (run: RunRow) => boolean;
  onRewind: (run: RunRow) => void;
}

const MARGIN = 12; // beside the end of the newest bar

const AXES: Record<Axis["kind"], string> = {
  time: "Watermarks are times.",
  local_time: "Watermarks are times without a zone.",
  number: "Watermarks are numbers, such as versions of a table, runs of an upstream, or places in a sequence of files.",
  order: "Watermarks are neither times nor numbers: they are shown in the order in which they were read.",
  unknown: "How the watermarks compare is unknown: they are shown in the order in which they were read.",
};

/** A row for each run: a bar is the window that it read, the small bar at the right how long it took. */
export function Timeline({ runs, ctx = "", ...actions }: TimelineProps) {
  const zone = useZone();
  const axis = useMemo(() => axisOf(runs, ctx, zone), [runs, ctx, zone]);
  const bars = useMemo(() => barsOf(runs, ctx, axis), [runs, ctx, axis]);
  return (
    <>
      <Text fontSize="xs" color="fg.muted" mb={1}>
        {axis ? AXES[axis.kind] : "No run has a watermark here."}
        {axis?.kind === "time" && ` Times are in ${zone}.`} Arrow keys move between runs; Enter opens one.
      </Text>
      <Rows bars={bars} axis={axis} ctx={ctx} {...actions} />
    </>
  );
}

interface RowsProps extends Omit<TimelineProps, "runs" | "ctx"> {
  bars: readonly Bar[];
  axis: Axis | undefined;
  ctx: string;
}

function Rows({ bars, axis, ctx, onOpen, mayRewind, onRewind }: RowsProps) {
  const [active, setActive] = useState(0);
  const [ref, width] = useWidth<HTMLDivElement>();
  const box = useRef<HTMLDivElement>(null);
  useNewestInSight(box, ref, place(newestEnd(bars), width), `${ctx} ${width > 0}`);
  const grid = useRef<HTMLDivElement>(null);
  const current = Math.min(active, bars.length - 1);
  const move = (event: KeyboardEvent) => {
    const next = rowAfter(event.key, current, bars.length);
    if (next === undefined) return;
    event.preventDefault();
    setActive(next);
    grid.current?.querySelectorAll<HTMLElement>("[role=row][tabindex]")[next]?.focus();
  };
  return (
    <Box ref={box} borderWidth="1px" borderRadius="md" overflowX="auto" data-testid="timeline">
      <Box
        ref={grid}
        role="grid"
        aria-label={`Timeline of runs${ctx ? `, context ${ctx}` : ""}`}
        aria-readonly
        minW="44rem"
        onKeyDown={move}
      >
        <Flex role="row" bg="bg.subtle" borderBottomWidth="1px" fontSize="xs" color="fg.muted" alignItems="end">
          <Box role="columnheader" {...NAME} px={2} py={1}>
            Run
          </Box>
          <Box role="columnheader" flex="1 1 0" minW={0} ref={ref} aria-label="Window">
            <TimelineAxis axis={axis} width={width} />
          </Box>
          <Box role="columnheader" flex="0 0 8.5rem" px={2} py={1}>
            Duration
          </Box>
          <Box role="columnheader" flex="0 0 7.5rem" aria-label="Rewind" />
        </Flex>
        {bars.map((bar, index) => (
          <TimelineRow
            key={bar.key}
            bar={bar}
            axis={axis}
            width={width}
            isActive={index === current}
            onFocus={() => setActive(index)}
            onOpen={() => onOpen(bar.run)}
            onRewind={mayRewind(bar.run) ? () => onRewind(bar.run) : undefined}
          />
        ))}
      </Box>
    </Box>
  );
}

// Once for each context, and not for whoever has scrolled since: a wider window or newer runs move nothing.
function useNewestInSight(
  box: RefObject<HTMLElement | null>,
  windows: RefObject<HTMLElement | null>,
  end: number,
  key: string,
) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says when
  useEffect(() => {
    if (!box.current || !windows.current) return;
    const left = windows.current.offsetLeft - box.current.offsetLeft;
    box.current.scrollLeft = Math.max(0, left + end + MARGIN - box.current.clientWidth);
  }, [key]);
}
