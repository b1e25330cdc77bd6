import { Alert, Box, Button, HStack, Skeleton, Stack, Text } from "@chakra-ui/react";
import type { Preview, Wish } from "../api/model";
import { Step } from "./Step";
import { ToldView } from "./ToldView";
import { toldOf } from "./told";
import { troubleOf } from "./trouble";
import { fixOf } from "./words";

interface PreviewStepProps {
  preview: { data: Preview | undefined; error: Error | null; isFetching: boolean };
  wish: Wish | undefined;
  /** What the first step lacks, so that there is nothing to preview. */
  lacks: string | undefined;
  /** The version of the job, as the page has it by now. */
  versionNow: number | undefined;
  onLookAgain: () => void;
  onClean: () => void;
  /** Whether the page may look at files, and so clean. */
  mayLook: boolean;
}

/** The second step: what the change would do. */
export function PreviewStep(props: PreviewStepProps) {
  return (
    <Step title="2. What it would do">
      <Box aria-live="polite" aria-busy={props.preview.isFetching} data-testid="change-preview">
        <Content {...props} />
      </Box>
    </Step>
  );
}

function Content({ preview, wish, lacks, versionNow, onLookAgain, onClean, mayLook }: PreviewStepProps) {
  if (wish === undefined) return <Text color="fg.muted">Choose {lacks} first.</Text>;
  if (preview.isFetching) return <Loading />;
  if (preview.error !== null) return <Unfit error={preview.error} onLookAgain={onLookAgain} />;
  if (preview.data === undefined) return <Loading />;
  const { version, needs_approval } = preview.data;
  const isOld = versionNow !== undefined && versionNow > version;
  return (
    <Stack gap={4}>
      {isOld && (
        <Alert.Root status="info">
          <Alert.Indicator />
          <Alert.Description>
            The job is at version {versionNow} by now, so this is old: look again before you send it.
          </Alert.Description>
        </Alert.Root>
      )}
      {needs_approval && (
        <Alert.Root status="info">
          <Alert.Indicator />
          <Alert.Content>
            <Alert.Title>The job is protected</Alert.Title>
            <Alert.Description>
              This asks for the change; nothing happens before somebody else approves it.
            </Alert.Description>
          </Alert.Content>
        </Alert.Root>
      )}
      <ToldView told={toldOf(preview.data)} fix={fixOf(wish, mayLook)} onClean={onClean} />
      <HStack justify="space-between">
        <Text color="fg.muted" fontSize="sm">
          For version {version} of the job.
        </Text>
        <Button size="xs" variant="outline" onClick={onLookAgain}>
          Look again
        </Button>
      </HStack>
    </Stack>
  );
}

export function Loading() {
  return (
    <Stack gap={2}>
      <Text srOnly>Loading the preview</Text>
      <Skeleton height={20} />
      <Skeleton height={4} />
      <Skeleton height={4} width="70%" />
    </Stack>
  );
}

/** A change that can't be made, as the server says before anybody confirms it; a preview itself changes nothing. */
export function Unfit({ error, onLookAgain }: { error: Error; onLookAgain: () => void }) {
  const trouble = troubleOf(error);
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0} alignItems="flex-start">
        <Alert.Title>{trouble.offer === "look" ? "There is no preview" : trouble.title}</Alert.Title>
        <Alert.Description wordBreak="break-word">{[error.message, ...trouble.wrong].join(" ")}</Alert.Description>
        <Button size="sm" variant="outline" mt={2} onClick={onLookAgain}>
          Look again
        </Button>
      </Alert.Content>
    </Alert.Root>
  );
}
