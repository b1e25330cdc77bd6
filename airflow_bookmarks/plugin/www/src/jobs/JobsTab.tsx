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
          {count(data.total, "job")} of this {whose}
        </Heading>
      )}
      <JobsList
        caption={`Jobs of this ${whose} and where their bookmarks stand`}
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
    <Empty title={whose === "DAG" ? "No task of this DAG has a bookmark yet" : "This task has no bookmark yet"}>
      A job appears here when a task with BookmarkSparkSubmitOperator has run, and its bookmark lies where the
      connection [bookmarks] conn_id of Airflow's configuration leads.
    </Empty>
  );
}
