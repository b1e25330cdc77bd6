import { Box } from "@chakra-ui/react";
import { useSearchParams } from "react-router-dom";
import { JobPage } from "../job/JobPage";
import { JobsPage } from "../jobs/JobsPage";
import { JobsTab } from "../jobs/JobsTab";
import { Settled } from "./Settled";

/** What Airflow hands over: nothing in its navigation, the DAG and the task in their tabs. */
export interface ShellProps {
  dagId?: string;
  taskId?: string;
}

/** Show what the address asks for: `?job=` names a job, without it there is the list. */
export function Shell({ dagId, taskId }: ShellProps) {
  const [search] = useSearchParams();
  const job = search.get("job");
  return (
    <Box p={4} maxW="100%" data-testid="bookmarks">
      <Settled>
        {job !== null ? (
          <JobPage key={job} job={job} />
        ) : dagId !== undefined ? (
          <JobsTab dagId={dagId} {...(taskId === undefined ? {} : { taskId })} />
        ) : (
          <JobsPage />
        )}
      </Settled>
    </Box>
  );
}
