import { Button, ButtonGroup, Flex, NativeSelect, Pagination, Text } from "@chakra-ui/react";
import { inFull } from "../words/number";

interface PagesProps {
  /** What is on the pages, in plural: "jobs". */
  of: string;
  total: number;
  /** Counts from 1. */
  page: number;
  limit: number;
  limits: readonly number[];
  onPage: (page: number) => void;
  onLimit: (limit: number) => void;
}

/** Turn the pages of a list, and say how much is on one. A list that fits on the smallest page has none. */
export function Pages({ of, total, page, limit, limits, onPage, onLimit }: PagesProps) {
  if (total <= Math.min(...limits)) return null;
  const first = (page - 1) * limit + 1;
  return (
    <Flex gap={3} wrap="wrap" alignItems="center" justifyContent="space-between">
      <Text fontSize="sm" color="fg.muted">
        {inFull(first)}–{inFull(Math.min(total, page * limit))} of {inFull(total)}
      </Text>
      {total > limit && (
        <Pagination.Root
          aria-label={`Pages of ${of}`}
          count={total}
          page={page}
          pageSize={limit}
          siblingCount={1}
          onPageChange={(change) => onPage(change.page)}
        >
          <Turns />
        </Pagination.Root>
      )}
      <Size of={of} limit={limit} limits={limits} onLimit={onLimit} />
    </Flex>
  );
}

function Turns() {
  return (
    <ButtonGroup size="sm" variant="ghost" gap={0} flexWrap="wrap">
      <Pagination.PrevTrigger asChild>
        <Button px={2} aria-label="Previous page">
          ‹
        </Button>
      </Pagination.PrevTrigger>
      <Pagination.Context>
        {({ pages }) =>
          pages.map((each, i) =>
            each.type === "page" ? (
              <Pagination.Item key={each.value} type="page" value={each.value} asChild>
                <Button px={2} minW={8} _selected={{ bg: "bg.emphasized", fontWeight: "bold" }}>
                  {inFull(each.value)}
                </Button>
              </Pagination.Item>
            ) : (
              // biome-ignore lint/suspicious/noArrayIndexKey: a gap has no name but its place
              <Pagination.Ellipsis key={`gap ${i}`} index={i}>
                …
              </Pagination.Ellipsis>
            ),
          )
        }
      </Pagination.Context>
      <Pagination.NextTrigger asChild>
        <Button px={2} aria-label="Next page">
          ›
        </Button>
      </Pagination.NextTrigger>
    </ButtonGroup>
  );
}

function Size({ of, limit, limits, onLimit }: Pick<PagesProps, "of" | "limit" | "limits" | "onLimit">) {
  return (
    <NativeSelect.Root size="sm" width="auto">
      <NativeSelect.Field
        aria-label={`Number of ${of} per page`}
        value={limit}
        onChange={(event) => onLimit(Number(event.currentTarget.value))}
      >
        {limits.map((each) => (
          <option key={each} value={each}>
            {each} per page
          </option>
        ))}
      </NativeSelect.Field>
      <NativeSelect.Indicator />
    </NativeSelect.Root>
  );
}
