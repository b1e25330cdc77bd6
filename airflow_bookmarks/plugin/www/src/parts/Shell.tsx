import { useSearchParams } from "react-router-dom";
import { ApiError } from "../api/client";
import { JobPage } from "../job/JobPage";
import { JobsPage } from "../jobs/JobsPage";
import { JobsTab } from "../jobs/JobsTab";
import { RequestsPage } from "../requests/RequestsPage";
import { useZone } from "../words/zone";
import { Boundary } from "./Boundary";
import { Offline } from "./Offline";
import { PageBox } from "./PageBox";
import { Problem } from "./Problem";
import { Settled } from "./Settled";
import { viewOf } from "./Views";

/** What Airflow hands over: nothing in its navigation, the DAG and the task in their tabs. */
export interface ShellProps {
  dagId?: string;
  taskId?: string;
}

/** Whether a job can have this name, as far as an address is concerned: these would ask another route of the server. */
function isName(job: string): boolean {
  return !job.includes("/") && job !== "." && job !== "..";
}

/** Show what the address asks for: `?job=` names a job, without it there is the list of jobs, or of requests. */
export function Shell({ dagId, taskId }: ShellProps) {
  const [search] = useSearchParams();
  useZone(); // another one draws all of the page anew, and with it each time
  const job = search.get("job");
  return (
    <PageBox p={4} maxW="100%" data-testid="bookmarks">
      <Settled>
        <Offline />
        <Boundary key={job} what="This page">
          {job ? (
            isName(job) ? (
              <JobPage key={job} job={job} />
            ) : (
              <Problem error={new ApiError(404, `${job} can't be the name of a job.`)} />
            )
          ) : dagId !== undefined ? (
            <JobsTab dagId={dagId} {...(taskId === undefined ? {} : { taskId })} />
          ) : viewOf(search) === "requests" ? (
            <RequestsPage />
          ) : (
            <JobsPage />
          )}
        </Boundary>
      </Settled>
    </PageBox>
  );
}
