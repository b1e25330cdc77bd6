import { Heading, Stack } from "@chakra-ui/react";
import { type ReactNode, useId } from "react";

/** A part of a dialog, under a heading of its own. */
export function Step({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <Stack as="section" gap={3} aria-labelledby={id} minW={0}>
      <Heading as="h3" size="sm" id={id}>
        {title}
      </Heading>
      {children}
    </Stack>
  );
}
