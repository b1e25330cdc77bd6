import { Flex, Heading, Skeleton, Stack } from "@chakra-ui/react";
import { useCallback } from "react";
import { useJobs } from "../api/queries";
import { useTitle } from "../parts/useTitle";
import { Views } from "../parts/Views";
import { count } from "../words/number";
import { HealthFilter } from "./HealthFilter";
import { JobsList } from "./JobsList";
import { isFiltered, queryOf } from "./listQuery";
import { NoJobs, NoMatch } from "./NoJobs";
import { SearchField } from "./SearchField";
import { StateFilter } from "./StateFilter";
import { useListQuery } from "./useListQuery";

/** All jobs: searched, filtered, sorted, a page of them. What is asked for stands in the address. */
export function JobsPage() {
  const [listQuery, ask] = useListQuery();
  const answer = useJobs(queryOf(listQuery));
  useTitle(undefined);
  const onSearch = useCallback((search: string) => ask({ search }), [ask]);
  const isPart = isFiltered(listQuery);
  const hasNone = answer.data?.total === 0 && !isPart && !answer.isPlaceholderData;
  return (
    <Stack gap={4}>
      <Views current="jobs" />
      <Flex gap={3} wrap="wrap" alignItems="center">
        <Heading as="h1" size="md" minW="8rem">
          <Total of={answer.data?.total} isPart={isPart} hasFailed={answer.isError} />
        </Heading>
        {!hasNone && (
          <>
            <SearchField value={listQuery.search} onSearch={onSearch} />
            <StateFilter value={listQuery.state} onState={(state) => ask({ state })} />
            <HealthFilter
              value={listQuery.health}
              counts={answer.data?.by_health}
              onHealth={(health) => ask({ health })}
            />
          </>
        )}
      </Flex>
      <JobsList
        caption="Jobs and their bookmarks"
        listQuery={listQuery}
        onAsk={ask}
        answer={answer}
        sorting={{ by: listQuery.sort, onSort: (sort) => ask({ sort }) }}
        empty={
          isPart ? (
            <NoMatch listQuery={listQuery} onClear={() => ask({ search: "", health: undefined, state: undefined })} />
          ) : (
            <NoJobs />
          )
        }
      />
    </Stack>
  );
}

function Total({ of, isPart, hasFailed }: { of: number | undefined; isPart: boolean; hasFailed: boolean }) {
  if (of !== undefined) return <>{count(of, isPart ? "job found" : "job", isPart ? "jobs found" : "jobs")}</>;
  return hasFailed ? (
    <>Jobs</>
  ) : (
    <Skeleton as="span" display="inline-block" width="6rem" height={5} aria-label="Jobs" />
  );
}
