import { Alert, Badge, Box, HStack, List, Stack, Text } from "@chakra-ui/react";
import { ConflictView } from "../change/ConflictView";
import { troubleOf } from "../change/trouble";
import { useReadFirst } from "../change/useReadFirst";
import { JobLink } from "../parts/JobLink";
import { sentence } from "../words/sentence";
import { auditInWords, doneJobs, type Outcome, outcomesInWords, SHOWN_ORDER } from "./outcome";

/** What became of each job, first what a person has to look at. */
export function BulkResult({ outcomes }: { outcomes: readonly Outcome[] }) {
  const box = useReadFirst<HTMLDivElement>();
  const isDone = doneJobs(outcomes).length === outcomes.length;
  const audit = auditInWords(outcomes);
  return (
    <Stack gap={4} ref={box} tabIndex={-1} outline="none" scrollMarginTop={4} data-testid="bulk-result">
      <Alert.Root status={isDone ? "success" : "warning"} role="status">
        <Alert.Indicator />
        <Alert.Content>
          <Alert.Title>{isDone ? "Done" : "Not all jobs were changed"}</Alert.Title>
          <Alert.Description>{outcomesInWords(outcomes)}.</Alert.Description>
        </Alert.Content>
      </Alert.Root>
      <Box borderWidth="1px" borderRadius="md">
        <List.Root listStyle="none" aria-label="Result by job">
          {SHOWN_ORDER.flatMap((fate) => outcomes.filter((each) => each.fate === fate)).map((outcome) => (
            <OutcomeLine key={outcome.job} outcome={outcome} />
          ))}
        </List.Root>
      </Box>
      {audit !== undefined && <Text color="fg.muted">{audit}</Text>}
      {!isDone && <Text color="fg.muted">Jobs that were neither changed nor requested stay selected in the list.</Text>}
    </Stack>
  );
}

const BADGES: Record<Outcome["fate"], readonly [string, string]> = {
  changed: ["Changed", "green"],
  requested: ["Approval requested", "blue"],
  refused: ["Refused", "red"],
  unconfirmed: ["Not confirmed", "orange"],
  untouched: ["Unchanged", "gray"],
};

function OutcomeLine({ outcome }: { outcome: Outcome }) {
  const [name, palette] = BADGES[outcome.fate];
  return (
    <List.Item px={3} py={2} borderBottomWidth="1px" _last={{ borderBottomWidth: 0 }}>
      <HStack gap={2} wrap="wrap">
        <JobLink job={outcome.job} />
        <Badge colorPalette={palette}>{name}</Badge>
      </HStack>
      <Box fontSize="sm" wordBreak="break-word">
        <Said outcome={outcome} />
      </Box>
    </List.Item>
  );
}

function Said({ outcome }: { outcome: Outcome }) {
  if (outcome.fate === "untouched") return <Text color="fg.muted">{outcome.why}</Text>;
  if (outcome.fate === "changed" || outcome.fate === "requested") {
    return <Text color="fg.muted">{sentence(outcome.answer.said)}</Text>;
  }
  const { title, message, wrong, difference } = troubleOf(outcome.error);
  return (
    <Stack gap={2}>
      <Text>
        {title}. {[message, ...wrong].map(sentence).join(" ")}
      </Text>
      {outcome.fate === "unconfirmed" && (
        <Text>The change may have been made. Check the job's events before you send it again.</Text>
      )}
      {difference !== undefined && <ConflictView difference={difference} />}
    </Stack>
  );
}
