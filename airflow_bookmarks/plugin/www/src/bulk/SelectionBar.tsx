import { Button, Flex, HStack, Link, Text } from "@chakra-ui/react";
import { type Dispatch, type SetStateAction, useRef, useState } from "react";
import type { JobRow } from "../api/model";
import { BulkDialog } from "./BulkDialog";
import type { BulkSpec } from "./plan";
import { lackOfSelection, type PickedJob, type Selection, selectionInWords, selectionWithout } from "./selection";

interface SelectionBarProps {
  selection: Selection;
  /** The jobs that the list shows. */
  rows: readonly JobRow[];
  onSelection: Dispatch<SetStateAction<Selection>>;
  onClear: () => void;
}

const KINDS: readonly (readonly [BulkSpec["kind"], string, string])[] = [
  ["reset", "Reset\u2026", "go back to before the first run"],
  ["rewind", "Rewind\u2026", "go back to where an earlier run ended"],
];

/** How many jobs are selected, and what can be done with them. */
export function SelectionBar({ selection, rows, onSelection, onClear }: SelectionBarProps) {
  const [opened, setOpened] = useState<{ kind: BulkSpec["kind"]; picked: readonly PickedJob[] }>();
  const opener = useRef<HTMLButtonElement>(null);
  const lack = lackOfSelection(selection);
  return (
    <>
      <Flex gap={3} wrap="wrap" alignItems="center">
        <Text role="status" fontSize="sm">
          {[selectionInWords(selection, rows), lack].filter(Boolean).join(". ")}
        </Text>
        {selection.size > 0 && (
          <HStack role="group" aria-label="Change the selected jobs" gap={2} wrap="wrap">
            {KINDS.map(([kind, name, means]) => (
              <Button
                key={kind}
                size="xs"
                variant="outline"
                aria-haspopup="dialog"
                title={means}
                disabled={lack !== undefined}
                onClick={(event) => {
                  opener.current = event.currentTarget;
                  setOpened({ kind, picked: inOrder(selection) });
                }}
              >
                {name}
              </Button>
            ))}
            <Link as="button" fontSize="sm" colorPalette="blue" onClick={onClear}>
              Clear selection
            </Link>
          </HStack>
        )}
      </Flex>
      {opened !== undefined && (
        <BulkDialog
          {...opened}
          opener={opener}
          onDone={(jobs) => onSelection((now) => selectionWithout(now, jobs))}
          onClosed={() => setOpened(undefined)}
        />
      )}
    </>
  );
}

function inOrder(selection: Selection): PickedJob[] {
  return [...selection.values()].sort((one, other) => one.job.localeCompare(other.job));
}
