import { Alert, Button, CloseButton, chakra, Dialog, Stack } from "@chakra-ui/react";
import { type ReactNode, type RefObject, useId, useRef, useState } from "react";
import { PagePortal } from "../parts/PageBox";
import { backAlong, firstField, trailOf } from "./focus";

interface FrameProps {
  title: string;
  /** Whether something is under way: closing does not stop it, and says so. */
  isSending: boolean;
  /** What is said to whoever closes it then. */
  leaving?: string;
  /** The button that opened it, which gets the focus back. Without one, what had the focus. */
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
  onSubmit?: (() => void) | undefined;
  children: ReactNode;
  /** The buttons besides the one that closes. Those of type "submit" submit the form. */
  actions?: (form: string) => ReactNode;
}

const Form = chakra("form");
const Fields = chakra("fieldset");

/** A dialog with a form: Escape and Cancel close it, what had the focus gets it back, a click beside it does nothing. */
export function Frame({
  title,
  isSending,
  leaving = LEAVING,
  opener,
  onClosed,
  onSubmit,
  children,
  actions,
}: FrameProps) {
  const [isOpen, setIsOpen] = useState(true);
  const [isLeaving, setIsLeaving] = useState(false);
  const [trail] = useState(() => trailOf(opener.current ?? document.activeElement));
  const form = useId();
  const body = useRef<HTMLDivElement>(null);
  const leave = () => (isSending ? setIsLeaving(true) : setIsOpen(false));
  return (
    <Dialog.Root
      open={isOpen}
      onOpenChange={({ open }) => open || leave()}
      onExitComplete={onClosed}
      closeOnInteractOutside={false}
      // The type has null only, and the focus trap takes undefined only.
      initialFocusEl={() => firstField(body.current) as HTMLElement | null}
      finalFocusEl={() => backAlong(trail)}
      size="lg"
      scrollBehavior="inside"
    >
      <PagePortal>
        <Dialog.Backdrop />
        <Dialog.Positioner>
          <Dialog.Content data-testid="change-dialog">
            <Dialog.Header pe={12}>
              <Dialog.Title wordBreak="break-word">{title}</Dialog.Title>
            </Dialog.Header>
            <Dialog.Body ref={body}>
              <Form
                id={form}
                onSubmit={(event) => {
                  event.preventDefault();
                  if (!isSending) onSubmit?.();
                }}
              >
                <Fields disabled={isSending} borderWidth={0} minW={0} aria-busy={isSending}>
                  <Stack gap={6}>{children}</Stack>
                </Fields>
              </Form>
            </Dialog.Body>
            <Dialog.Footer flexWrap="wrap">
              {isSending && isLeaving ? <Leaving says={leaving} onLeave={() => setIsOpen(false)} /> : null}
              <Button variant="outline" onClick={leave}>
                {actions === undefined || isSending ? "Close" : "Cancel"}
              </Button>
              {actions?.(form)}
            </Dialog.Footer>
            <Dialog.CloseTrigger asChild>
              <CloseButton size="sm" aria-label="Close" />
            </Dialog.CloseTrigger>
          </Dialog.Content>
        </Dialog.Positioner>
      </PagePortal>
    </Dialog.Root>
  );
}

const LEAVING = "Closing this dialog won't stop it. The result will appear in the job's history.";

function Leaving({ says, onLeave }: { says: string; onLeave: () => void }) {
  return (
    <Alert.Root status="warning" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0} alignItems="flex-start">
        <Alert.Title>The change is being sent</Alert.Title>
        <Alert.Description>{says}</Alert.Description>
        <Button size="sm" variant="outline" mt={2} onClick={onLeave}>
          Close anyway
        </Button>
      </Alert.Content>
    </Alert.Root>
  );
}
