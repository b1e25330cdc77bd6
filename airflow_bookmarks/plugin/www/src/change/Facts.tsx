import { chakra, Grid, Text } from "@chakra-ui/react";
import { Fragment } from "react";
import type { Fact } from "./words";

interface FactsProps {
  facts: readonly Fact[];
  /** Also say what follows from each. */
  withNotes?: boolean;
}

/** What a change would do, line by line. */
export function Facts({ facts, withNotes = true }: FactsProps) {
  return (
    <Grid as="dl" templateColumns={{ base: "1fr", sm: "9.5rem 1fr" }} columnGap={4} rowGap={{ base: 0, sm: 2 }}>
      {facts.map(({ label, says, note }) => (
        <Fragment key={label}>
          <chakra.dt color="fg.muted">{label}</chakra.dt>
          <chakra.dd wordBreak="break-word" mb={{ base: 2, sm: 0 }}>
            {says}
            {withNotes && note && <Text color="fg.muted">{note}</Text>}
          </chakra.dd>
        </Fragment>
      ))}
    </Grid>
  );
}
