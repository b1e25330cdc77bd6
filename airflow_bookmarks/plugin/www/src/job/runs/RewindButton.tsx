import { Button } from "@chakra-ui/react";
import type { MouseEvent } from "react";
import type { RunRow } from "../../api/model";

interface RewindButtonProps {
  run: RunRow;
  isActive?: boolean;
  size?: "2xs" | "xs";
  onRewind: () => void;
}

/** Pick a run as the one to go back to; what that would do is shown before anything is done. */
export function RewindButton({ run, isActive = true, size = "2xs", onRewind }: RewindButtonProps) {
  const press = (event: MouseEvent) => {
    event.stopPropagation();
    onRewind();
  };
  return (
    <Button
      size={size}
      variant="outline"
      tabIndex={isActive ? 0 : -1}
      aria-label={`Rewind to here, run ${run.number}`}
      onClick={press}
    >
      Rewind to here
    </Button>
  );
}
