import { Link, Tooltip } from "@chakra-ui/react";
import { type ReactElement, type ReactNode, useEffect, useRef, useState } from "react";
import { PagePortal } from "./PageBox";

interface HintProps {
  /** What is shown in its place, and what one points at. */
  label: ReactNode;
  children: ReactNode;
}

/** More to a short text, for mouse, touch and keyboard alike. */
export function Hint({ label, children }: HintProps) {
  return (
    <Explained by={children}>
      <Link as="button" type="button" variant="underline" color="fg.muted" cursor="help">
        {label}
      </Link>
    </Explained>
  );
}

interface ExplainedProps {
  /** What explains it. */
  by: ReactNode;
  /** A button, or what takes the props and the ref of one. */
  children: ReactElement;
}

/** Explain a button when one points at it, comes to it by keyboard, or presses it; Escape closes the explanation. */
export function Explained({ by, children }: ExplainedProps) {
  const [isOpen, setIsOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  useClosedElsewhere(isOpen, trigger, () => setIsOpen(false));
  return (
    <Tooltip.Root
      open={isOpen}
      onOpenChange={({ open }) => setIsOpen(open)}
      closeOnClick={false}
      closeOnPointerDown={false}
      openDelay={200}
      closeDelay={100}
      positioning={{ placement: "top" }}
    >
      {/* A finger neither points nor comes by keyboard: it presses, in a row that may open something else. */}
      <Tooltip.Trigger
        asChild
        ref={trigger}
        onClick={(event) => {
          event.stopPropagation();
          setIsOpen(true);
        }}
      >
        {children}
      </Tooltip.Trigger>
      {/* A list has hundreds of these: what is closed leaves nothing in the page. */}
      {isOpen && (
        <PagePortal>
          <Tooltip.Positioner>
            <Tooltip.Content maxW="md">{by}</Tooltip.Content>
          </Tooltip.Positioner>
        </PagePortal>
      )}
    </Tooltip.Root>
  );
}

// What a finger has opened has no focus everywhere, so it would stay when the finger goes elsewhere.
function useClosedElsewhere(isOpen: boolean, trigger: React.RefObject<HTMLElement | null>, onClose: () => void) {
  useEffect(() => {
    if (!isOpen) return;
    const onPress = (event: PointerEvent) => {
      if (event.target instanceof Node && trigger.current?.contains(event.target)) return;
      onClose();
    };
    document.addEventListener("pointerdown", onPress);
    return () => document.removeEventListener("pointerdown", onPress);
  }, [isOpen, trigger, onClose]);
}
