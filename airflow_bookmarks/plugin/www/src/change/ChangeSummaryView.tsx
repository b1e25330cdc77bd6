import { Alert, Button, Stack } from "@chakra-ui/react";
import type { ChangeSummary, NeverRead } from "./changeSummary";
import { Facts } from "./Facts";
import { Marks, pairsOf } from "./Marks";
import { type Fix, factsOf, isUncertain, neverReadInWords, twiceInWords, twiceTitle } from "./words";

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
        <Alert.Title>This skips data: it will never be read</Alert.Title>
        <Alert.Description wordBreak="break-word">{neverReadInWords(never)}</Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}

const FIXES: Record<Fix, string> = {
  clean: "To prevent that, also remove what the undone runs wrote.",
  "command line":
    "To prevent that, make the change on the command line with --clean, which takes back files and no rows of a table, or remove those rows by hand before the next run.",
  "all contexts":
    "To prevent that, choose all contexts and remove what the undone runs wrote, or remove those rows by hand before the next run.",
  "ask anew": "To prevent that, reject the request and make one that also removes what the undone runs wrote.",
  "by hand": "To prevent that, remove those rows from the target by hand before the next run.",
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
            Remove it too
          </Button>
        )}
      </Alert.Content>
    </Alert.Root>
  );
}
