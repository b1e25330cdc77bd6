import { Flex, Text } from "@chakra-ui/react";
import { BarShape } from "./BarShape";
import type { Look } from "./looks";

/** One line of a legend: a bar as it is drawn, and what it means. */
export function LookMeaning({ look, width = 20, children }: { look: Look; width?: number; children: string }) {
  return (
    <Flex as="li" gap={2} alignItems="center">
      <svg width={width + 2} height={16} aria-hidden>
        <BarShape look={look} x={1} y={1} width={width} height={14} />
      </svg>
      <Text fontSize="xs" color="fg.muted">
        {children}
      </Text>
    </Flex>
  );
}
