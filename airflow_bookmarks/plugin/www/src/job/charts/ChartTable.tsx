import { Box, Table } from "@chakra-ui/react";
import { Ago } from "../../parts/Ago";
import { ScrollTable } from "../../parts/ScrollTable";
import type { Measure } from "./measures";
import type { ChartPoint } from "./points";
import { remarkOf, valueWords } from "./told";

/** The points of a chart as a table, newest first. */
export function ChartTable({ measure, points }: { measure: Measure; points: readonly ChartPoint[] }) {
  const columns = [
    { title: "Run", isNumber: true },
    { title: "When" },
    { title: measure.title, isNumber: true },
    { title: "Median of runs before", isNumber: true },
    { title: "Remark" },
  ];
  return (
    <Box mt={2} maxH="16rem" overflowY="auto">
      <ScrollTable caption={`${measure.title} by run`} columns={columns}>
        {[...points].reverse().map((point) => (
          <Table.Row key={point.key}>
            <Table.Cell textAlign="end">{point.number}</Table.Cell>
            <Table.Cell whiteSpace="nowrap">
              <Ago at={point.at} />
            </Table.Cell>
            <Table.Cell textAlign="end">{valueWords(point, measure)}</Table.Cell>
            <Table.Cell textAlign="end">{point.verdict === null ? "–" : measure.say(point.verdict.usual)}</Table.Cell>
            <Table.Cell>{remarkOf(point)}</Table.Cell>
          </Table.Row>
        ))}
      </ScrollTable>
    </Box>
  );
}
