import { Alert, Box, Button, List, Stack, Text } from "@chakra-ui/react";
import { useEffect, useRef } from "react";
import { useLook } from "../api/queries";
import { Problem } from "../parts/Problem";
import { sentence } from "../words/sentence";
import { ConflictView, Events } from "./ConflictView";
import { eventsAt, troubleOf } from "./trouble";

interface TroubleViewProps {
  job: string;
  error: Error;
  /** The version that was looked at when it was sent. */
  version: number;
  /** Look at the new preview; where there is none, nothing is offered. */
  onPreview?: () => void;
  /** Whether the job is sharded, so that what is noted stands with each of its shards. */
  isSharded?: boolean;
}

/** Why something was not done, or that nobody knows whether it was, and what can be done about it. */
export function TroubleView({ job, error, version, onPreview, isSharded }: TroubleViewProps) {
  const trouble = troubleOf(error);
  const box = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each refusal takes the focus, so that it is read out
  useEffect(() => {
    box.current?.focus();
    box.current?.scrollIntoView({ block: "nearest" });
  }, [error]);
  return (
    <Alert.Root ref={box} tabIndex={-1} role="alert" status={trouble.offer === "nothing" ? "error" : "warning"}>
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title>{trouble.title}</Alert.Title>
        <Alert.Description>
          <Stack gap={3} align="flex-start" wordBreak="break-word">
            <Text>{sentence(trouble.message)}</Text>
            {trouble.wrong.length > 0 && (
              <List.Root ps={5}>
                {trouble.wrong.map((each) => (
                  <List.Item key={each}>{each}</List.Item>
                ))}
              </List.Root>
            )}
            {trouble.difference !== undefined && (
              <Box color="fg" maxW="100%">
                <ConflictView difference={trouble.difference} />
              </Box>
            )}
            {trouble.offer === "preview" && onPreview !== undefined && (
              <Button size="sm" onClick={onPreview}>
                Refresh preview
              </Button>
            )}
            {trouble.offer === "look" && isSharded && (
              <Text>The change may have been made in some or all shards. Check each shard's events.</Text>
            )}
            {trouble.offer === "look" && !isSharded && <Look job={job} version={version} />}
          </Stack>
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}

function show(element: HTMLElement | null) {
  element?.scrollIntoView({ block: "nearest" });
}

/** Look whether something was made although its answer was lost. */
function Look({ job, version }: { job: string; version: number }) {
  const look = useLook(job);
  const found = look.data === undefined ? undefined : eventsAt(version, look.data.events);
  return (
    <Stack gap={3} align="flex-start" w="100%">
      <Text>The change may have been made. Check before you send it again.</Text>
      <Button size="sm" loading={look.isPending} onClick={() => look.mutate()}>
        Check now
      </Button>
      {look.isError && <Problem error={look.error} />}
      {found !== undefined && (
        <Stack role="status" gap={2} ref={show} scrollMarginBottom={4}>
          <Text fontWeight="semibold">
            {found.length === 0
              ? `No change recorded since version ${version}: so far, the change has not been made.`
              : `Recorded since version ${version}:`}
          </Text>
          <Events events={found} />
        </Stack>
      )}
    </Stack>
  );
}
