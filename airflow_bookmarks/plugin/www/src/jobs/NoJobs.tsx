import { Button, Code, Text } from "@chakra-ui/react";
import { Empty } from "../parts/Empty";
import { type ListQuery, missing } from "./listQuery";

/** Say that there is no job at all, and how one comes about. */
export function NoJobs() {
  return (
    <Empty title="No job has a bookmark yet">
      <Text as="span" display="block" textAlign="center">
        A job appears here when a task with <Code>BookmarkSparkSubmitOperator</Code> has run.
      </Text>
      <Text as="span" display="block" textAlign="center">
        This page looks at the connection that <Code>[bookmarks] conn_id</Code> of Airflow's configuration names, and at
        the jobs of DAGs that you may look at.
      </Text>
    </Empty>
  );
}

/** Say that no job is what was asked for, and offer all of them. */
export function NoMatch({ listQuery, onClear }: { listQuery: ListQuery; onClear: () => void }) {
  return (
    <Empty title="No job matches">
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
    <Empty title={`There is no page ${page}`}>
      <Text as="span" display="block" textAlign="center" mb={3}>
        The list has fewer jobs than that.
      </Text>
      <Button size="sm" variant="outline" display="flex" mx="auto" onClick={onFirst}>
        Show the first page
      </Button>
    </Empty>
  );
}
