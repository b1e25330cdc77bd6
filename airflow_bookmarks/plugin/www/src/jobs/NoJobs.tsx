import { Button, Code, Text } from "@chakra-ui/react";
import { Empty } from "../parts/Empty";
import { type ListQuery, missing } from "./listQuery";

/** Say that there is no job at all, and how one comes about. */
export function NoJobs() {
  return (
    <Empty title="No bookmarks yet">
      <Text as="span" display="block" textAlign="center">
        A job appears here once a task with <Code>BookmarkSparkSubmitOperator</Code> has run.
      </Text>
      <Text as="span" display="block" textAlign="center">
        This page uses the connection set by <Code>[bookmarks] conn_id</Code> in Airflow's configuration, and shows the
        jobs of DAGs that you have access to.
      </Text>
    </Empty>
  );
}

/** Say that no job is what was asked for, and offer all of them. */
export function NoMatch({ listQuery, onClear }: { listQuery: ListQuery; onClear: () => void }) {
  return (
    <Empty title="No matching jobs">
      <Text as="span" display="block" textAlign="center" mb={3} wordBreak="break-word">
        {missing(listQuery)}
      </Text>
      <Button size="sm" variant="outline" display="flex" mx="auto" onClick={onClear}>
        Clear search and filters
      </Button>
    </Empty>
  );
}

/** Say that the list has become shorter than the page that the address names. */
export function NoSuchPage({ page, onFirst }: { page: number; onFirst: () => void }) {
  return (
    <Empty title={`Page ${page} is out of range`}>
      <Text as="span" display="block" textAlign="center" mb={3}>
        The list doesn't have that many jobs.
      </Text>
      <Button size="sm" variant="outline" display="flex" mx="auto" onClick={onFirst}>
        Show the first page
      </Button>
    </Empty>
  );
}
