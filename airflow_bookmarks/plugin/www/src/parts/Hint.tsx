import { Link, Portal, Tooltip } from "@chakra-ui/react";
import type { ReactNode } from "react";

interface HintProps {
  /** What is shown in its place, and what one points at. */
  label: ReactNode;
  children: ReactNode;
}

/** More to a short text, for mouse and keyboard alike: it opens when one points at it, comes to it, or presses it. */
export function Hint({ label, children }: HintProps) {
  return (
    <Tooltip.Root closeOnClick={false} openDelay={200} closeDelay={100} positioning={{ placement: "top" }}>
      <Tooltip.Trigger asChild>
        <Link as="button" type="button" variant="underline" color="fg.muted" cursor="help">
          {label}
        </Link>
      </Tooltip.Trigger>
      <Portal>
        <Tooltip.Positioner>
          <Tooltip.Content maxW="md">{children}</Tooltip.Content>
        </Tooltip.Positioner>
      </Portal>
    </Tooltip.Root>
  );
}
