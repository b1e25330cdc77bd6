import { Alert, Button, Stack } from "@chakra-ui/react";
import type { ChangeSummary, NeverRead } from "./changeSummary";
import { Facts } from "./Facts";
import { Marks, pairsOf } from "./Marks";
import { type Fix, factsOf, isUncertain, neverReadInWords, neverReadTitle, twiceInWords, twiceTitle } from "./words";

interface ChangeSummaryViewProps {
  summary: ChangeSummary;
  /** What can be done about duplicate rows; undefined: the change is not to be made, and nothing follows. */
  fix: Fix | undefined;
  /** Ask for the clean that prevents duplicate rows. */
  onClean?: (() => void) | undefined;
}

/** What a change would do, before anybody confirms it. */
export function ChangeSummaryView({ summary, fix, onClean }: ChangeSummaryViewProps) {
  return (
    <Stack gap={4}>
      {summary.neverRead !== null && <Skipped never={summary.neverRead} />}
      {summary.twice.length > 0 && fix !== undefined && (
        <Twice targets={summary.twice} unknown={summary.twiceUnknown} fix={fix} onClean={onClean} />
      )}
      <Facts facts={factsOf(summary)} withNotes={fix !== undefined} />
      <Marks
        caption="Watermarks before and after the change"
        heads={["Before", "After"]}
        rows={pairsOf(summary.watermarks)}
      />
      {Object.keys(summary.state).length > 0 && (
        <Marks
          caption="Values of job.state before and after the change"
          heads={["Before", "After"]}
          rows={pairsOf(summary.state)}
          of="Value"
          none="none"
        />
      )}
    </Stack>
  );
}

function Skipped({ never }: { never: NeverRead }) {
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title>{neverReadTitle(never)}</Alert.Title>
        <Alert.Description wordBreak="break-word">{neverReadInWords(never)}</Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}

const FIXES: Record<Fix, string> = {
  clean: "Remove the undone runs' output to avoid duplicates.",
  "command line":
    "To avoid duplicates, make the change on the command line with --clean, which removes files but no rows of a table, or remove those rows manually before the next run.",
  "all contexts":
    "To avoid duplicates, choose all contexts and remove the undone runs' output, or remove those rows manually before the next run.",
  "ask anew": "To avoid duplicates, reject this request and make one that also removes the undone runs' output.",
  "by hand": "To avoid duplicates, remove those rows from the target manually before the next run.",
};

interface TwiceProps {
  targets: readonly string[];
  unknown: readonly string[];
  fix: Fix;
  onClean: (() => void) | undefined;
}

function Twice({ targets, unknown, fix, onClean }: TwiceProps) {
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0} alignItems="flex-start">
        <Alert.Title>{twiceTitle(targets, unknown)}</Alert.Title>
        <Alert.Description wordBreak="break-word">
          {twiceInWords(targets, unknown)} {FIXES[isUncertain(targets, unknown) ? "by hand" : fix]}
        </Alert.Description>
        {fix === "clean" && !isUncertain(targets, unknown) && onClean !== undefined && (
          <Button size="sm" variant="outline" mt={2} onClick={onClean}>
            Remove their output
          </Button>
        )}
      </Alert.Content>
    </Alert.Root>
  );
}
