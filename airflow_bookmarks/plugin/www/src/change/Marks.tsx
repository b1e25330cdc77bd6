import { Box, Table, Text } from "@chakra-ui/react";
import { Mark } from "../parts/Mark";
import { useOrders } from "../parts/orders";
import { ScrollTable } from "../parts/ScrollTable";

/** Two watermarks of a context, none where it has read nothing. */
export type Pair = readonly [string | null | undefined, string | null | undefined];

interface MarksProps {
  caption: string;
  /** What the two columns of watermarks are. */
  heads: readonly [string, string];
  rows: Readonly<Record<string, Pair>>;
  /** What each row is of. */
  of?: string;
  /** What is said of a row that has nothing. */
  none?: string;
}

/** Where contexts stood, and where they stand then. */
export function Marks({ caption, heads, rows, of = "Context", none = "nothing read" }: MarksProps) {
  const orders = useOrders();
  const entries = Object.entries(rows);
  if (entries.length === 0) return <Text color="fg.muted">No context has a watermark.</Text>;
  return (
    <ScrollTable caption={caption} columns={[of, ...heads].map((title) => ({ title }))}>
      {entries.map(([ctx, [one, other]]) => (
        <Table.Row key={ctx}>
          <Table.Cell>{ctx}</Table.Cell>
          <Table.Cell>
            <Mark mark={one} order={orders[ctx]} none={none} />
          </Table.Cell>
          <Table.Cell fontWeight={one === other ? undefined : "semibold"}>
            <Mark mark={other} order={orders[ctx]} none={none} />
            {one === other && (
              <Text as="span" color="fg.muted">
                {" (unchanged)"}
              </Text>
            )}
          </Table.Cell>
        </Table.Row>
      ))}
    </ScrollTable>
  );
}

type Windows = Readonly<Record<string, { before: string | null; after: string | null }>>;

/** The values of `job.state` that a change of several jobs changes, before and after; nothing where there are none. */
export function StateMarks({ of }: { of: readonly (readonly [string, Windows | undefined])[] }) {
  const rows = of.flatMap(([job, windows]) =>
    Object.entries(windows ?? {}).map(([name, window]) => ({ job, name, ...window })),
  );
  if (rows.length === 0) return null;
  return (
    <Box maxH="14rem" overflowY="auto">
      <ScrollTable
        caption="Values of job.state before and after the change"
        columns={["Job", "Value", "Before", "After"].map((title) => ({ title }))}
      >
        {rows.map(({ job, name, before, after }) => (
          <Table.Row key={`${job} ${name}`}>
            <Table.Cell wordBreak="break-all">{job}</Table.Cell>
            <Table.Cell>{name}</Table.Cell>
            <Table.Cell wordBreak="break-word">{before ?? "none"}</Table.Cell>
            <Table.Cell wordBreak="break-word" fontWeight="semibold">
              {after ?? "none"}
            </Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Box>
  );
}

/** Return windows as pairs of watermarks. */
export function pairsOf(windows: Windows) {
  return Object.fromEntries(
    Object.entries(windows).map(([ctx, { before, after }]): [string, Pair] => [ctx, [before, after]]),
  );
}
