import { Table, VisuallyHidden } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { NAMED_ROWS } from "./namedRows";

/** A column: its title, and whether it holds numbers. */
export interface Column {
  title: string;
  isNumber?: boolean;
  /** Whether the title is for screen readers alone. */
  isSilent?: boolean;
}

interface ScrollTableProps {
  /** What the table is about, for screen readers. */
  caption: string;
  columns: readonly Column[];
  children: ReactNode;
}

/** A table that scrolls sideways in its own box, except for its first column; `children` are its rows. */
export function ScrollTable({ caption, columns, children }: ScrollTableProps) {
  return (
    // What is for screen readers alone is placed absolutely: without a place of its own here it would widen the page.
    <Table.ScrollArea
      position="relative"
      borderWidth="1px"
      borderRadius="md"
      tabIndex={0}
      role="region"
      aria-label={caption}
    >
      <Table.Root size="sm" css={NAMED_ROWS}>
        <Table.Caption captionSide="top" p={0} m={0}>
          <VisuallyHidden>{caption}</VisuallyHidden>
        </Table.Caption>
        <Table.Header bg="bg.subtle">
          <Table.Row>
            {columns.map((column) => (
              <Table.ColumnHeader
                key={column.title}
                scope="col"
                whiteSpace="nowrap"
                textAlign={column.isNumber ? "end" : "start"}
              >
                {column.isSilent ? <VisuallyHidden>{column.title}</VisuallyHidden> : column.title}
              </Table.ColumnHeader>
            ))}
          </Table.Row>
        </Table.Header>
        <Table.Body>{children}</Table.Body>
      </Table.Root>
    </Table.ScrollArea>
  );
}
