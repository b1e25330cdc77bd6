import { Box, Flex, Text } from "@chakra-ui/react";
import type { KeyboardEvent } from "react";
import { duration } from "../../words/time";
import { BarShape } from "./BarShape";
import { BAR_LOOKS } from "./looks";
import { RewindButton } from "./RewindButton";
import { TimelineBar } from "./TimelineBar";
import type { Axis, Bar } from "./timeline";

interface TimelineRowProps {
  bar: Bar;
  axis: Axis | undefined;
  width: number;
  /** Whether the keyboard is on this row, or would come to it. */
  isActive: boolean;
  onFocus: () => void;
  onOpen: () => void;
  /** Undefined: going back to this run is nothing that could be done. */
  onRewind: (() => void) | undefined;
}

const LONGEST = 40;

/** The place of a run's name: it stays while the windows scroll. */
export const NAME = {
  flex: { base: "0 0 6rem", md: "0 0 9.5rem" },
  position: "sticky",
  left: 0,
  zIndex: 1,
  bg: "inherit",
  alignSelf: "stretch",
} as const;

/** One run of the timeline. */
export function TimelineRow({ bar, axis, width, isActive, onFocus, onOpen, onRewind }: TimelineRowProps) {
  const press = (event: KeyboardEvent) => {
    // Within the row there is a button with an Enter of its own.
    if (event.key !== "Enter" || event.target !== event.currentTarget) return;
    event.preventDefault();
    onOpen();
  };
  return (
    <Flex
      role="row"
      tabIndex={isActive ? 0 : -1}
      aria-label={bar.said}
      title={bar.said}
      data-run={bar.key}
      alignItems="center"
      borderBottomWidth="1px"
      borderColor="border.muted"
      _last={{ borderBottomWidth: 0 }}
      cursor="pointer"
      bg="bg"
      _hover={{ bg: "bg.subtle" }}
      focusRing="inside"
      onFocus={onFocus}
      onClick={onOpen}
      onKeyDown={press}
    >
      <Name bar={bar} />
      <Box role="gridcell" flex="1 1 0" minW={0} overflow="hidden">
        <TimelineBar bar={bar} axis={axis} width={width} />
      </Box>
      <Duration bar={bar} />
      <Box role="gridcell" flex="0 0 7.5rem" px={1}>
        {onRewind && <RewindButton run={bar.run} isActive={isActive} onRewind={onRewind} />}
      </Box>
    </Flex>
  );
}

function Name({ bar }: { bar: Bar }) {
  const word = bar.look === "published" ? undefined : BAR_LOOKS[bar.look].word.split(",")[0];
  const said = [...(word ? [word] : []), ...bar.remarks].join(", ");
  return (
    <Box role="gridcell" {...NAME} px={2} py={1} lineHeight="short" minW={0}>
      <Text as="span" fontWeight="medium" fontSize="sm">
        {bar.run.number}
      </Text>
      {said && (
        <Text as="span" fontSize="xs" color={bar.look === "failed" ? "fg.error" : "fg.muted"} ms={2}>
          {said}
        </Text>
      )}
    </Box>
  );
}

function Duration({ bar }: { bar: Bar }) {
  return (
    <Flex role="gridcell" flex="0 0 8.5rem" px={2} gap={2} alignItems="center">
      <svg width={LONGEST} height={8} aria-hidden style={{ flexShrink: 0 }}>
        {bar.seconds !== undefined && (
          <BarShape look={bar.look} x={0.5} y={0.5} width={Math.max(2, bar.share * (LONGEST - 1))} height={7} />
        )}
      </svg>
      <Text as="span" fontSize="xs" color="fg.muted" whiteSpace="nowrap">
        {bar.seconds === undefined ? "–" : duration(bar.seconds)}
      </Text>
    </Flex>
  );
}
