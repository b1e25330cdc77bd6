import { Alert, Flex, Heading, Skeleton, Stack, Table, Text } from "@chakra-ui/react";
import { useSearchParams } from "react-router-dom";
import type { WaitingRequest } from "../api/model";
import { useWaitingRequests } from "../api/queries";
import { requestName } from "../change/words";
import { Ago } from "../parts/Ago";
import { Empty } from "../parts/Empty";
import { JobLink } from "../parts/JobLink";
import { Pages } from "../parts/Pages";
import { Problem } from "../parts/Problem";
import { ScrollTable } from "../parts/ScrollTable";
import { Stale } from "../parts/Stale";
import { Unjudged } from "../parts/Unjudged";
import { Updated } from "../parts/Updated";
import { useTitle } from "../parts/useTitle";
import { Views } from "../parts/Views";
import { count } from "../words/number";
import { dutyOf, LIMITS, pageOf, withPage } from "./waiting";

const COLUMNS = [
  { title: "Job" },
  { title: "Change" },
  { title: "Requested" },
  { title: "By" },
  { title: "Reason" },
  { title: "Expires" },
  { title: "You" },
];

/** The changes of protected jobs that wait for a second person, of all jobs, the oldest first. */
export function RequestsPage() {
  const [address, setAddress] = useSearchParams();
  const { page, limit } = pageOf(address);
  const answer = useWaitingRequests((page - 1) * limit, limit);
  const { data, error, refetch } = answer;
  useTitle("Requests");
  return (
    <Stack gap={4}>
      <Views current="requests" />
      <Flex gap={3} wrap="wrap" alignItems="center" justifyContent="space-between" minH={8}>
        <Heading as="h1" size="md">
          {data === undefined ? "Requests" : `${count(data.total, "job")} with requests for approval`}
        </Heading>
        <Updated of={answer} healthAsOf={data?.as_of} onRefresh={() => void refetch()} />
      </Flex>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      <Stale of={answer} />
      <Unjudged jobs={data?.unjudged} />
      {answer.isPending && <Skeleton height={24} aria-label="Loading the requests" />}
      {data !== undefined && data.damaged.length > 0 && <Damaged jobs={data.damaged} />}
      {data?.requests.length === 0 && data.damaged.length === 0 && <None page={page} />}
      {data !== undefined && data.requests.length > 0 && (
        <ScrollTable caption="Requests for approval" columns={COLUMNS}>
          {data.requests.map((request) => (
            <Line key={`${request.job} ${request.id}`} request={request} />
          ))}
        </ScrollTable>
      )}
      {data !== undefined && (
        <Pages
          of="jobs"
          total={data.total}
          page={page}
          limit={limit}
          limits={LIMITS}
          onPage={(next) => setAddress(withPage(address, next, limit))}
          onLimit={(next) => setAddress(withPage(address, 1, next))}
        />
      )}
    </Stack>
  );
}

function Line({ request }: { request: WaitingRequest }) {
  return (
    <Table.Row verticalAlign="top" data-testid="waiting-request">
      <Table.Cell minW="9rem">
        <JobLink job={request.job} request={request.id} />
        {request.dag_id !== null && (
          <Text fontSize="xs" color="fg.muted">
            {request.dag_id}
          </Text>
        )}
      </Table.Cell>
      <Table.Cell minW="10rem" whiteSpace="normal" wordBreak="break-word">
        {requestName(request.change)}
      </Table.Cell>
      <Table.Cell whiteSpace="nowrap">
        <Ago at={request.made_at} />
      </Table.Cell>
      <Table.Cell>{request.who}</Table.Cell>
      <Table.Cell minW="12rem" whiteSpace="normal" wordBreak="break-word">
        {request.why}
      </Table.Cell>
      <Table.Cell whiteSpace="nowrap">
        <Ago at={request.valid_until} mayLieAhead />
      </Table.Cell>
      <Table.Cell>{dutyOf(request)}</Table.Cell>
    </Table.Row>
  );
}

function None({ page }: { page: number }) {
  if (page > 1) return <Empty title={`Page ${page} is empty`}>The requests on it were decided.</Empty>;
  return (
    <Empty title="No requests for approval">
      Changes of protected jobs that wait for a second person appear here, for jobs that you have access to.
    </Empty>
  );
}

function Damaged({ jobs }: { jobs: readonly string[] }) {
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title>Some requests can't be read</Alert.Title>
        <Alert.Description>
          <Stack gap={1}>
            {jobs.map((job) => (
              <JobLink key={job} job={job} />
            ))}
          </Stack>
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}
