import { Button, Card, HStack, Stack, Text } from "@chakra-ui/react";
import { useEffect, useRef } from "react";
import { useSearchParams } from "react-router-dom";
import type { Job, RequestRow } from "../api/model";
import { Ago } from "../parts/Ago";
import { ExplainedBadge } from "../parts/ExplainedBadge";
import { ChangeSummaryView } from "./ChangeSummaryView";
import { summaryOfRequest } from "./changeSummary";
import { decisionOf, isWaiting, MEANS } from "./decision";
import { fixOfRequest, requestName } from "./words";

/** What somebody is about to decide; `name` is what it is called. */
export interface Deciding {
  how: "approve" | "reject";
  request: RequestRow;
  name: string;
}

interface RequestCardProps {
  job: Job;
  request: RequestRow;
  onDecide: (deciding: Deciding, button: HTMLElement) => void;
}

/** One request: what, who, why, until when, what it would do, and who may decide. */
export function RequestCard({ job, request, onDecide }: RequestCardProps) {
  const decision = decisionOf(job, request);
  const summary = summaryOfRequest(request.preview);
  const [address] = useSearchParams();
  const isNamed = address.get("request") === request.id;
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isNamed) void card.current?.scrollIntoView({ block: "nearest" });
  }, [isNamed]);
  return (
    <Card.Root
      ref={card}
      size="sm"
      data-testid="request"
      {...(isNamed ? { borderColor: "border.inverted", "aria-current": "true" } : {})}
    >
      <Card.Header>
        <HStack justify="space-between" flexWrap="wrap">
          <Card.Title as="h3" wordBreak="break-word">
            {requestName(request.change)}
          </Card.Title>
          <StateOf state={request.state} />
        </HStack>
      </Card.Header>
      <Card.Body gap={4} minW={0} fontSize="sm">
        <Origin request={request} />
        {summary !== undefined && (
          <ChangeSummaryView summary={summary} fix={isWaiting(request) ? fixOfRequest(request.change) : undefined} />
        )}
        {decision.why !== undefined && <Text color="fg.muted">{decision.why}</Text>}
      </Card.Body>
      {decision.mayReject && (
        <Card.Footer flexWrap="wrap">
          {decision.mayApprove && (
            <Button
              size="sm"
              colorPalette="red"
              aria-haspopup="dialog"
              onClick={(event) => onDecide({ how: "approve", request, name: decision.approve }, event.currentTarget)}
            >
              {decision.approve}
            </Button>
          )}
          <Button
            size="sm"
            variant="outline"
            aria-haspopup="dialog"
            onClick={(event) => onDecide({ how: "reject", request, name: decision.reject }, event.currentTarget)}
          >
            {decision.reject}
          </Button>
        </Card.Footer>
      )}
    </Card.Root>
  );
}

function StateOf({ state }: { state: string }) {
  const palette = { open: "blue", approved: "purple", done: "green", rejected: "red" }[state] ?? "gray";
  return (
    <ExplainedBadge colorPalette={palette} means={MEANS[state]}>
      {state.toUpperCase()}
    </ExplainedBadge>
  );
}

function Origin({ request }: { request: RequestRow }) {
  return (
    <Stack gap={1} wordBreak="break-word">
      <Text>
        Requested by {request.who} <Ago at={request.made_at} />: {request.why}
      </Text>
      <Text color="fg.muted" fontSize="sm">
        Based on version {request.version}
        {isWaiting(request) && (
          <>
            ; expires <Ago at={request.valid_until} mayLieAhead />
          </>
        )}
        {request.decided_by === null ? "" : `; decided by ${request.decided_by}`}. Request {request.id}.
      </Text>
    </Stack>
  );
}
