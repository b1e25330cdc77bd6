import { Box, Table } from "@chakra-ui/react";
import { Ago } from "../../parts/Ago";
import { ScrollTable } from "../../parts/ScrollTable";
import type { ChartPoint, Measure } from "./charts";

/** The points of a chart as a table, newest first. */
export function ChartTable({ measure, points }: { measure: Measure; points: readonly ChartPoint[] }) {
  const columns = [{ title: "Run", isNumber: true }, { title: "Committed" }, { title: measure.title, isNumber: true }];
  return (
    <Box mt={2} maxH="16rem" overflowY="auto">
      <ScrollTable caption={`${measure.title} by run`} columns={columns}>
        {[...points].reverse().map((point) => (
          <Table.Row key={point.key}>
            <Table.Cell textAlign="end">{point.number}</Table.Cell>
            <Table.Cell whiteSpace="nowrap">
              <Ago at={point.at} />
            </Table.Cell>
            <Table.Cell textAlign="end">{point.value === null ? "unknown" : measure.say(point.value)}</Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Box>
  );
}
