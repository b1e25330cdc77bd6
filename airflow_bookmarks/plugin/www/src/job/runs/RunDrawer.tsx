import { CloseButton, Drawer, Flex } from "@chakra-ui/react";
import { useEffect, useRef, useState } from "react";
import type { RunRow } from "../../api/model";
import { PagePortal } from "../../parts/PageBox";
import { StateBadge } from "../../parts/StateBadge";
import { RewindButton } from "./RewindButton";
import { RunDetails } from "./RunDetails";

interface RunDrawerProps {
  job: string;
  /** The run that is open; undefined: none is. */
  run: RunRow | undefined;
  mayRewind: (run: RunRow) => boolean;
  onRewind: (run: RunRow) => void;
  onClose: () => void;
  /** Called when it is gone: before that the page behind it can't be focused. */
  onClosed: (run: RunRow) => void;
}

/** One run in full, beside the page. */
export function RunDrawer({ job, run, mayRewind, onRewind, onClose, onClosed }: RunDrawerProps) {
  const shown = useLast(run);
  const first = useRef<HTMLButtonElement>(null);
  return (
    <Drawer.Root
      open={run !== undefined}
      onOpenChange={(change) => !change.open && onClose()}
      onExitComplete={() => shown && onClosed(shown)}
      // Not the badge of the state, which would open what explains it.
      initialFocusEl={() => first.current}
      size="lg"
      lazyMount
      unmountOnExit
    >
      <PagePortal>
        <Drawer.Backdrop />
        <Drawer.Positioner>
          <Drawer.Content>
            <Drawer.Header>
              <Flex gap={3} alignItems="center" wrap="wrap">
                <Drawer.Title>Run {shown?.number}</Drawer.Title>
                {shown && <StateBadge state={shown.state} />}
                {run && mayRewind(run) && <RewindButton run={run} size="xs" onRewind={() => onRewind(run)} />}
              </Flex>
            </Drawer.Header>
            <Drawer.Body>{shown && <RunDetails job={job} run={shown} />}</Drawer.Body>
            <Drawer.CloseTrigger asChild>
              <CloseButton ref={first} size="sm" aria-label="Close" />
            </Drawer.CloseTrigger>
          </Drawer.Content>
        </Drawer.Positioner>
      </PagePortal>
    </Drawer.Root>
  );
}

// While it slides away it keeps what it showed.
function useLast(run: RunRow | undefined): RunRow | undefined {
  const [last, setLast] = useState(run);
  useEffect(() => {
    if (run !== undefined) setLast(run);
  }, [run]);
  return run ?? last;
}
