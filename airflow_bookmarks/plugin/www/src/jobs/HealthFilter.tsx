import { Button, HStack } from "@chakra-ui/react";
import { healthWords, paletteOfHealth } from "../parts/HealthBadge";
import { inFull } from "../words/number";
import { HEALTHS, type Health } from "./listQuery";

interface HealthFilterProps {
  value: Health | undefined;
  /** How many jobs there are of each health; undefined while that is not known. */
  counts: Readonly<Record<string, number>> | null | undefined;
  onHealth: (health: Health | undefined) => void;
}

/** How many jobs there are of each health, worst first; each is a button that shows these alone. */
export function HealthFilter({ value, counts, onHealth }: HealthFilterProps) {
  const shown = HEALTHS.filter((each) => each === value || (counts?.[each] ?? 0) > 0);
  return (
    <HStack as="fieldset" aria-label="Filter by health" gap={2} wrap="wrap" border={0} p={0} m={0}>
      {shown.map((each) => (
        <Button
          key={each}
          size="xs"
          variant={each === value ? "solid" : "outline"}
          colorPalette={paletteOfHealth(each)}
          aria-pressed={each === value}
          title={healthWords(each)}
          onClick={() => onHealth(each === value ? undefined : each)}
        >
          {each} <span>{inFull(counts?.[each] ?? 0)}</span>
        </Button>
      ))}
    </HStack>
  );
}
