import { Flex, Text } from "@chakra-ui/react";
import type { RunRow } from "../../api/model";
import { BarShape } from "./BarShape";
import { BAR_LOOKS } from "./looks";
import { barsOf, type Look } from "./timeline";

/** What the bars of a timeline mean: those that are there. */
export function Legend({ runs }: { runs: readonly RunRow[] }) {
  const bars = barsOf(runs, "", undefined);
  const shown = new Set(bars.map((bar) => bar.look));
  const looks = (Object.keys(BAR_LOOKS) as Look[]).filter((look) => shown.has(look));
  return (
    <Flex as="ul" gap={4} wrap="wrap" mt={2} listStyleType="none" aria-label="What the bars mean">
      {looks.map((look) => (
        <Flex as="li" key={look} gap={2} alignItems="center">
          <svg width={22} height={12} aria-hidden>
            <BarShape look={look} x={1} y={1} width={20} height={10} />
          </svg>
          <Text fontSize="xs" color="fg.muted">
            {BAR_LOOKS[look].word}
          </Text>
        </Flex>
      ))}
      {bars.some((bar) => bar.isEmpty) && (
        <Flex as="li" gap={2} alignItems="center">
          <svg width={8} height={12} aria-hidden>
            <BarShape look="published" x={3} y={1} width={2} height={10} />
          </svg>
          <Text fontSize="xs" color="fg.muted">
            empty run
          </Text>
        </Flex>
      )}
    </Flex>
  );
}
