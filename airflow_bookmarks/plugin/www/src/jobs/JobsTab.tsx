import { Heading, Stack } from "@chakra-ui/react";
import { useJobsOfDag } from "../api/queries";
import { JobPage } from "../job/JobPage";
import { Empty } from "../parts/Empty";
import { count } from "../words/number";
import { JobsList } from "./JobsList";
import { offsetOf } from "./listQuery";
import { useListQuery } from "./useListQuery";

interface JobsTabProps {
  dagId: string;
  taskId?: string;
}

/** The jobs of a DAG or of a task. Where there is one alone, it is shown right away. */
export function JobsTab(props: JobsTabProps) {
  // Anew for another DAG or task, so that nothing of the one before is shown in the meantime.
  return <JobsOf key={`${props.dagId}/${props.taskId ?? ""}`} {...props} />;
}

function JobsOf({ dagId, taskId }: JobsTabProps) {
  const [listQuery, ask] = useListQuery();
  const answer = useJobsOfDag(dagId, taskId, offsetOf(listQuery.page, listQuery.limit), listQuery.limit);
  const { data } = answer;
  const only = data?.total === 1 ? data.jobs[0] : undefined;
  if (only !== undefined) return <JobPage key={only.job} job={only.job} />;
  const whose = taskId === undefined ? "DAG" : "task";
  return (
    <Stack gap={4}>
      {data !== undefined && data.total > 0 && (
        <Heading as="h2" size="sm">
          {count(data.total, "job")} in this {whose}
        </Heading>
      )}
      <JobsList
        caption={`Jobs in this ${whose} and their bookmarks`}
        listQuery={listQuery}
        onAsk={ask}
        answer={answer}
        empty={<NoneOf whose={whose} />}
      />
    </Stack>
  );
}

function NoneOf({ whose }: { whose: "DAG" | "task" }) {
  return (
    <Empty title={whose === "DAG" ? "No task in this DAG has a bookmark yet" : "This task has no bookmark yet"}>
      A job appears here once a task with BookmarkSparkSubmitOperator has run, if its bookmark is in the store that
      [bookmarks] conn_id in Airflow's configuration points to.
    </Empty>
  );
}
