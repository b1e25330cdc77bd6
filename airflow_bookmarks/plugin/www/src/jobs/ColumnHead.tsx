import { Button, HStack, Table } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { type Column, directionOf, type Sort, sortAfterClick } from "./listQuery";

/** How a list is sorted now, and what to do when somebody wants it otherwise. */
export interface Sorting {
  by: Sort;
  onSort: (sort: Sort) => void;
}

interface ColumnHeadProps {
  /** What is in the column, and by what it can be sorted; nothing where the API does not offer it. */
  columns: readonly (readonly [string, Column?])[];
  sorting: Sorting | undefined;
  isNumber?: boolean;
  /** What stands before the titles. */
  before?: ReactNode;
}

/** The head of a column; where the list can be sorted by what is in it, a click does that. */
export function ColumnHead({ columns, sorting, isNumber, before }: ColumnHeadProps) {
  const ways = columns.map(([, column]) => (column && sorting ? directionOf(column, sorting.by) : undefined));
  const isSortable = sorting !== undefined && columns.some(([, column]) => column !== undefined);
  const way = ways.find((each) => each !== undefined);
  return (
    <Table.ColumnHeader
      scope="col"
      whiteSpace="nowrap"
      textAlign={isNumber ? "end" : "start"}
      {...(isSortable ? { "aria-sort": way ?? "none" } : {})}
    >
      <HStack gap={3} justifyContent={isNumber ? "flex-end" : "flex-start"}>
        {before}
        {columns.map(([title, column], i) =>
          column === undefined || sorting === undefined ? (
            <span key={title}>{title}</span>
          ) : (
            <Button
              key={title}
              size="xs"
              variant="plain"
              px={0}
              height="auto"
              minW={0}
              gap={1}
              fontSize="inherit"
              fontWeight={ways[i] ? "bold" : "medium"}
              color={ways[i] ? "fg" : "fg.muted"}
              aria-label={`Sort by ${title}${ways[i] ? `, now ${ways[i]}` : ""}`}
              onClick={() => sorting.onSort(sortAfterClick(column, sorting.by))}
            >
              {title} <span aria-hidden="true">{ARROWS[ways[i] ?? "none"]}</span>
            </Button>
          ),
        )}
      </HStack>
    </Table.ColumnHeader>
  );
}

const ARROWS = { ascending: "↑", descending: "↓", none: "↕" };
