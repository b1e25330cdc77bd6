/**
 * The style of a table whose first column stays where it is while the others scroll: on a phone nobody would know any more
 * what a row is about. There it takes less than half of the width, however long its names are.
 */
export const NAMED_ROWS = {
  "& :is(td, th):first-of-type": {
    position: "sticky",
    left: 0,
    zIndex: 1,
    bg: "inherit",
    boxShadow: "inset -1px 0 {colors.border}",
  },
  // A short name keeps in one line, whatever the others need.
  "& td:first-of-type": {
    minW: "7rem",
    maxW: { base: "45vw", md: "28rem" },
    whiteSpace: "normal",
    overflowWrap: "anywhere",
  },
} as const;
