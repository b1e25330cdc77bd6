import { Flex, Text } from "@chakra-ui/react";
import { ChartMark } from "./ChartMark";
import { MARKS, type Mark } from "./marks";

/** What the marks of the charts mean: those that are there. */
export function ChartLegend({ marks }: { marks: readonly Mark[] }) {
  return (
    <Flex as="ul" columnGap={4} rowGap={1} wrap="wrap" listStyleType="none" aria-label="What the marks mean">
      {marks.map((mark) => (
        <Flex as="li" key={mark} gap={2} alignItems="center">
          <svg width={20} height={16} aria-hidden>
            <ChartMark mark={mark} x={10} y={8} />
          </svg>
          <Text fontSize="xs" color="fg.muted">
            {MARKS[mark].word}
          </Text>
        </Flex>
      ))}
    </Flex>
  );
}
