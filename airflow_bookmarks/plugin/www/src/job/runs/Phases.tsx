import { Box, Flex, Stack, Text } from "@chakra-ui/react";
import type { RunRow } from "../../api/model";
import { duration } from "../../words/time";
import { phasesOf } from "./details";

/** How long each part of a run took. */
export function Phases({ run }: { run: RunRow }) {
  return (
    <Stack as="ul" gap={1} listStyleType="none">
      {phasesOf(run).map((phase) => (
        <Flex as="li" key={phase.name} gap={3} alignItems="center" fontSize="sm">
          <Text flex="0 0 8rem" color="fg.muted">
            {phase.name}
          </Text>
          <Box flex="1 1 0" aria-hidden>
            <Box h={2} borderRadius="sm" bg="blue.solid" width={`${phase.share * 100}%`} minW="1px" />
          </Box>
          <Text flex="0 0 6rem" textAlign="end">
            {duration(phase.seconds)}
          </Text>
        </Flex>
      ))}
    </Stack>
  );
}
