import { Alert, Box, Button, chakra, Grid, HStack, Stack, Table, Text } from "@chakra-ui/react";
import { Fragment } from "react";
import type { ShardedPreview } from "../api/model";
import { ScrollTable } from "../parts/ScrollTable";
import { Loading, Unfit } from "./PreviewStep";
import { Step } from "./Step";
import { shardedFactsOf } from "./sharded";
import { againInWords } from "./words";

interface ShardedPreviewStepProps {
  preview: { data: ShardedPreview | undefined; error: Error | null; isFetching: boolean };
  /** What the first step lacks, so that there is nothing to preview. */
  lacks: string | undefined;
  onLookAgain: () => void;
}

const COLUMNS = [
  { title: "Shard" },
  { title: "Last run kept", isNumber: true },
  { title: "Runs undone", isNumber: true },
  { title: "Read again" },
];

/** The second step of a change of a sharded job: sums, and each shard. */
export function ShardedPreviewStep(props: ShardedPreviewStepProps) {
  return (
    <Step title="2. What it would do">
      <Box aria-live="polite" aria-busy={props.preview.isFetching} data-testid="change-preview">
        <Content {...props} />
      </Box>
    </Step>
  );
}

function Content({ preview, lacks, onLookAgain }: ShardedPreviewStepProps) {
  if (lacks !== undefined) return <Text color="fg.muted">Choose {lacks} first.</Text>;
  if (preview.isFetching) return <Loading />;
  if (preview.error !== null) return <Unfit error={preview.error} onLookAgain={onLookAgain} />;
  if (preview.data === undefined) return <Loading />;
  const seen = preview.data;
  return (
    <Stack gap={4}>
      {seen.written_twice.length > 0 && <Twice targets={seen.written_twice} />}
      <Grid as="dl" templateColumns={{ base: "1fr", sm: "9.5rem 1fr" }} columnGap={4} rowGap={{ base: 0, sm: 2 }}>
        {shardedFactsOf(seen).map(({ label, says, note }) => (
          <Fragment key={label}>
            <chakra.dt color="fg.muted">{label}</chakra.dt>
            <chakra.dd wordBreak="break-word" mb={{ base: 2, sm: 0 }}>
              {says}
              {note && <Text color="fg.muted">{note}</Text>}
            </chakra.dd>
          </Fragment>
        ))}
      </Grid>
      {seen.shards > 0 && (
        <Box maxH="14rem" overflowY="auto">
          <ScrollTable caption="Virtual shards that would change" columns={COLUMNS}>
            {Object.entries(seen.by_shard).map(([shard, each]) => (
              <Table.Row key={shard}>
                <Table.Cell wordBreak="break-all">{shard}</Table.Cell>
                <Table.Cell textAlign="end">{each.to_run === 0 ? "none" : each.to_run}</Table.Cell>
                <Table.Cell textAlign="end">{each.undone_run_count}</Table.Cell>
                <Table.Cell>{againInWords(each.read_again)}</Table.Cell>
              </Table.Row>
            ))}
          </ScrollTable>
        </Box>
      )}
      <HStack justify="space-between">
        <Text color="fg.muted" fontSize="sm">
          For version {seen.version} of the job: the sum of those of its shards.
        </Text>
        <Button size="xs" variant="outline" onClick={onLookAgain}>
          Look again
        </Button>
      </HStack>
    </Stack>
  );
}

function Twice({ targets }: { targets: readonly string[] }) {
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title>The same rows would come twice</Alert.Title>
        <Alert.Description wordBreak="break-word">
          What is read again is written again, and what was written stays, in {targets.join(", ")}. Remove it too, here
          or on the command line with --clean; or empty the target by hand before the next runs.
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}
