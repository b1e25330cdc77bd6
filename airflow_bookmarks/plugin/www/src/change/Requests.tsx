import { Alert, Button, Collapsible, Stack } from "@chakra-ui/react";
import { useRef, useState } from "react";
import type { Job, RequestRow } from "../api/model";
import { Section } from "../parts/Section";
import { ApproveDialog } from "./ApproveDialog";
import { isWaiting } from "./decision";
import { RejectDialog } from "./RejectDialog";
import { type Deciding, RequestCard } from "./RequestCard";

/** Requests for changes of a protected job: those that wait for somebody, and folded away those that don't. */
export function Requests({ job }: { job: Job }) {
  // Kept here, since what is decided leaves the list while its answer is still to be read.
  const [deciding, setDeciding] = useState<Deciding>();
  const opener = useRef<HTMLElement>(null);
  const waiting = job.requests.filter(isWaiting);
  const closed = job.requests.filter((request) => !isWaiting(request));
  const card = (request: RequestRow) => (
    <RequestCard
      key={request.id}
      job={job}
      request={request}
      onDecide={(decided, button) => {
        opener.current = button;
        setDeciding(decided);
      }}
    />
  );
  const hasSome = job.requests.length > 0 || job.damaged_requests.length > 0;
  const dialog = { job, opener, onClosed: () => setDeciding(undefined) };
  return (
    <>
      {hasSome && (
        <Section title="Requests for approval" hint="This job is protected: a change needs a second person's approval.">
          <Stack gap={4}>
            {job.damaged_requests.map((request) => (
              <DamagedRequest key={request.id} request={request} />
            ))}
            {waiting.map(card)}
            {closed.length > 0 && (
              <Collapsible.Root lazyMount>
                <Collapsible.Trigger asChild>
                  <Button size="sm" variant="ghost">
                    Decided and expired ({closed.length})
                  </Button>
                </Collapsible.Trigger>
                <Collapsible.Content>
                  <Stack gap={4} pt={2}>
                    {closed.map(card)}
                  </Stack>
                </Collapsible.Content>
              </Collapsible.Root>
            )}
          </Stack>
        </Section>
      )}
      {deciding?.how === "approve" && <ApproveDialog {...dialog} request={deciding.request} />}
      {deciding?.how === "reject" && <RejectDialog {...dialog} request={deciding.request} name={deciding.name} />}
    </>
  );
}

function DamagedRequest({ request }: { request: Job["damaged_requests"][number] }) {
  return (
    <Alert.Root status="error" data-testid="damaged-request">
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title wordBreak="break-all">Request {request.id} is damaged</Alert.Title>
        <Alert.Description wordBreak="break-word">{request.why}</Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}
