import { Flex } from "@chakra-ui/react";
import type { RunRow } from "../../api/model";
import { LookMeaning } from "./LookMeaning";
import { BAR_LOOKS, looksOf } from "./looks";

/** What the bars of a timeline mean: those that are there. */
export function Legend({ runs }: { runs: readonly RunRow[] }) {
  return (
    <Flex as="ul" gap={4} wrap="wrap" mt={2} listStyleType="none" aria-label="What the bars mean">
      {looksOf(runs.map((run) => run.state)).map((look) => (
        <LookMeaning key={look} look={look}>
          {BAR_LOOKS[look].word}
        </LookMeaning>
      ))}
      {runs.some((run) => run.is_empty) && (
        <LookMeaning look="published" width={2}>
          a tick: an empty run
        </LookMeaning>
      )}
    </Flex>
  );
}
