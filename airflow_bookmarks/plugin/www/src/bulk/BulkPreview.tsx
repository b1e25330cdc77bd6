import { Badge, Box, Button, Collapsible, HStack, List, Stack, Text } from "@chakra-ui/react";
import { ChangeSummaryView } from "../change/ChangeSummaryView";
import { summaryOf } from "../change/changeSummary";
import { Facts } from "../change/Facts";
import { ShardedPreviewView, TwiceAlert } from "../change/ShardedPreviewView";
import { JobOrders } from "../parts/orders";
import { type BulkStep, bulkFactsOf, type Fate, isActive, stepInWords, twiceOf } from "./plan";

interface BulkPreviewProps {
  steps: readonly BulkStep[];
  mayLook: boolean;
}

/** What a change of many jobs would do: in all, and to each. */
export function BulkPreview({ steps, mayLook }: BulkPreviewProps) {
  const twice = twiceOf(steps);
  return (
    <>
      {twice.targets.length > 0 && <TwiceAlert {...twice} />}
      <Facts facts={bulkFactsOf(steps)} />
      <Box
        maxH="24rem"
        overflowY="auto"
        borderWidth="1px"
        borderRadius="md"
        tabIndex={0}
        role="region"
        aria-label="Jobs"
      >
        <List.Root listStyle="none" aria-label="What would become of each job">
          {steps.map((step) => (
            <StepLine key={step.looked.picked.job} step={step} mayLook={mayLook} />
          ))}
        </List.Root>
      </Box>
    </>
  );
}

const BADGES: Partial<Record<Fate, readonly [string, string]>> = {
  request: ["Needs approval", "blue"],
  stands: ["Already there", "gray"],
  held: ["In use", "orange"],
  refused: ["Can't be changed", "red"],
};

interface StepLineProps {
  step: BulkStep;
  mayLook: boolean;
}

function StepLine({ step, mayLook }: StepLineProps) {
  const { looked, fate } = step;
  const badge = BADGES[fate];
  const isTwice = looked.of !== "nothing" && isActive(step) && looked.seen.written_twice.length > 0;
  return (
    <List.Item px={3} py={2} borderBottomWidth="1px" _last={{ borderBottomWidth: 0 }}>
      <Collapsible.Root lazyMount>
        <HStack gap={2} wrap="wrap">
          <Text fontWeight="semibold" wordBreak="break-all">
            {looked.picked.job}
          </Text>
          {badge !== undefined && <Badge colorPalette={badge[1]}>{badge[0]}</Badge>}
          {step.isForced && <Badge colorPalette="orange">Stops its run</Badge>}
          {isTwice && <Badge colorPalette="red">Duplicates</Badge>}
          {looked.of !== "nothing" && isActive(step) && (
            <Collapsible.Trigger asChild>
              <Button size="xs" variant="outline" ms="auto" aria-label={`Details of ${looked.picked.job}`}>
                Details
              </Button>
            </Collapsible.Trigger>
          )}
        </HStack>
        <Text fontSize="sm" color="fg.muted" wordBreak="break-word">
          {stepInWords(step)}
        </Text>
        <Collapsible.Content>
          <Stack gap={4} pt={3}>
            <Details step={step} mayLook={mayLook} />
          </Stack>
        </Collapsible.Content>
      </Collapsible.Root>
    </List.Item>
  );
}

/** All that the preview of one job says, as its own dialog shows it. */
function Details({ step: { looked }, mayLook }: StepLineProps) {
  if (looked.of === "nothing") return null;
  if (looked.of === "shards") return <ShardedPreviewView seen={looked.seen} />;
  return (
    <JobOrders value={looked.picked.order ?? {}}>
      <ChangeSummaryView summary={summaryOf(looked.seen)} fix={mayLook ? "clean" : "command line"} />
    </JobOrders>
  );
}
