import { Box, Flex, Heading, Text } from "@chakra-ui/react";
import { type ReactNode, useId } from "react";

interface SectionProps {
  title: string;
  /** What it is about, in one line. */
  hint?: string;
  /** What can be done with it, at the right of the title. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A part of a page under a title of its own. */
export function Section({ title, hint, actions, children }: SectionProps) {
  const id = useId();
  return (
    <Box as="section" aria-labelledby={id} minW={0}>
      <Flex gap={3} wrap="wrap" alignItems="center" justifyContent="space-between" mb={2}>
        <Box>
          <Heading id={id} as="h2" size="sm">
            {title}
          </Heading>
          {hint && (
            <Text fontSize="sm" color="fg.muted">
              {hint}
            </Text>
          )}
        </Box>
        {actions}
      </Flex>
      {children}
    </Box>
  );
}
