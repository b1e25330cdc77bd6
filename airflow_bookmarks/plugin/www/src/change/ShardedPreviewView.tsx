import { Alert, Box, Table } from "@chakra-ui/react";
import type { ShardedPreview } from "../api/model";
import { ScrollTable } from "../parts/ScrollTable";
import { Facts } from "./Facts";
import { StateMarks } from "./Marks";
import { shardedFactsOf } from "./sharded";
import { againInWords, twiceInWords, twiceTitle } from "./words";

const COLUMNS = [
  { title: "Shard" },
  { title: "Last run kept", isNumber: true },
  { title: "Runs undone", isNumber: true },
  { title: "Read again" },
];

/** What a change of a sharded job would do: sums, and each shard. */
export function ShardedPreviewView({ seen }: { seen: ShardedPreview }) {
  return (
    <>
      {seen.written_twice.length > 0 && (
        <TwiceAlert targets={seen.written_twice} unknown={seen.written_twice_unknown} />
      )}
      <Facts facts={shardedFactsOf(seen)} />
      <StateMarks of={Object.entries(seen.by_shard).map(([shard, { state }]) => [shard, state])} />
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
    </>
  );
}

/** Warn of targets that would hold rows twice. */
export function TwiceAlert({ targets, unknown }: { targets: readonly string[]; unknown: readonly string[] }) {
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title>{twiceTitle(targets, unknown)}</Alert.Title>
        <Alert.Description wordBreak="break-word">
          {twiceInWords(targets, unknown)} To avoid duplicates, remove the undone runs' output too, here or on the
          command line with --clean, which removes files but no rows of a table, or remove those rows manually before
          the next runs.
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}
