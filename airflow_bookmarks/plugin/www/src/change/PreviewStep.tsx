import { Alert, Box, Button, HStack, Skeleton, Stack, Text } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { Step } from "./Step";
import { troubleOf } from "./trouble";

interface PreviewStepProps<Seen> {
  preview: { data: Seen | undefined; error: Error | null; isFetching: boolean };
  /** What the first step lacks, so that there is nothing to preview. */
  lacks: string | undefined;
  /** How far a preview is that takes a while. */
  progress?: string;
  onLookAgain: () => void;
  needsApproval: boolean;
  /** Say below the preview what it was made for. */
  madeFor: (seen: Seen) => string;
  children: (seen: Seen) => ReactNode;
}

/** The second step: what the change would do. */
export function PreviewStep<Seen>(props: PreviewStepProps<Seen>) {
  return (
    <Step title="2. Preview">
      <Box aria-live="polite" aria-busy={props.preview.isFetching} data-testid="change-preview">
        <Content {...props} />
      </Box>
    </Step>
  );
}

function Content<Seen>(props: PreviewStepProps<Seen>) {
  const { preview, lacks, progress, onLookAgain, needsApproval, madeFor, children } = props;
  if (lacks !== undefined) return <Text color="fg.muted">First choose {lacks}.</Text>;
  if (preview.isFetching) return <Loading progress={progress} />;
  if (preview.error !== null) return <Unfit error={preview.error} onLookAgain={onLookAgain} />;
  if (preview.data === undefined) return <Loading progress={progress} />;
  return (
    <Stack gap={4}>
      {needsApproval && (
        <Alert.Root status="info">
          <Alert.Indicator />
          <Alert.Content>
            <Alert.Title>The job is protected</Alert.Title>
            <Alert.Description>
              This only requests the change; nothing happens until someone else approves it.
            </Alert.Description>
          </Alert.Content>
        </Alert.Root>
      )}
      {children(preview.data)}
      <HStack justify="space-between">
        <Text color="fg.muted" fontSize="sm">
          {madeFor(preview.data)}
        </Text>
        <Button size="xs" variant="outline" onClick={onLookAgain}>
          Refresh preview
        </Button>
      </HStack>
    </Stack>
  );
}

function Loading({ progress }: { progress: string | undefined }) {
  return (
    <Stack gap={2}>
      {progress === undefined ? <Text srOnly>Loading the preview</Text> : <Text color="fg.muted">{progress}</Text>}
      <Skeleton height={20} />
      <Skeleton height={4} />
      <Skeleton height={4} width="70%" />
    </Stack>
  );
}

/** A change that can't be made, as the server says before anybody confirms it; a preview itself changes nothing. */
function Unfit({ error, onLookAgain }: { error: Error; onLookAgain: () => void }) {
  const trouble = troubleOf(error);
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0} alignItems="flex-start">
        <Alert.Title>{trouble.offer === "look" ? "Preview failed" : trouble.title}</Alert.Title>
        <Alert.Description wordBreak="break-word">{[error.message, ...trouble.wrong].join(" ")}</Alert.Description>
        <Button size="sm" variant="outline" mt={2} onClick={onLookAgain}>
          Refresh preview
        </Button>
      </Alert.Content>
    </Alert.Root>
  );
}
