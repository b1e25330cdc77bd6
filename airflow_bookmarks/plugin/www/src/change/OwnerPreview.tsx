import { Alert, Box, Button, chakra, Grid, HStack, Stack, Text } from "@chakra-ui/react";
import { Fragment } from "react";
import type { OwnershipPreview } from "../api/model";
import { ownerFactsOf, ownerWarningsOf } from "./owner";
import { Loading, Unfit } from "./PreviewStep";
import { Step } from "./Step";

interface OwnerPreviewProps {
  preview: { data: OwnershipPreview | undefined; error: Error | null; isFetching: boolean };
  /** What the first step lacks, so that there is nothing to preview. */
  lacks: string | undefined;
  onLookAgain: () => void;
}

/** The second step of a change of an owner: whose the job would be, and who may change it then. */
export function OwnerPreview(props: OwnerPreviewProps) {
  return (
    <Step title="2. What it would do">
      <Box aria-live="polite" aria-busy={props.preview.isFetching} data-testid="change-preview">
        <Content {...props} />
      </Box>
    </Step>
  );
}

function Content({ preview, lacks, onLookAgain }: OwnerPreviewProps) {
  if (lacks !== undefined) return <Text color="fg.muted">Choose {lacks} first.</Text>;
  if (preview.isFetching) return <Loading />;
  if (preview.error !== null) return <Unfit error={preview.error} onLookAgain={onLookAgain} />;
  if (preview.data === undefined) return <Loading />;
  return (
    <Stack gap={4}>
      {preview.data.needs_approval && (
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
      {ownerWarningsOf(preview.data).map((said) => (
        <Alert.Root key={said} status="warning" role="alert">
          <Alert.Indicator />
          <Alert.Description wordBreak="break-word">{said}</Alert.Description>
        </Alert.Root>
      ))}
      <Grid as="dl" templateColumns={{ base: "1fr", sm: "9.5rem 1fr" }} columnGap={4} rowGap={{ base: 0, sm: 2 }}>
        {ownerFactsOf(preview.data).map(({ label, says }) => (
          <Fragment key={label}>
            <chakra.dt color="fg.muted">{label}</chakra.dt>
            <chakra.dd wordBreak="break-word" mb={{ base: 2, sm: 0 }}>
              {says}
            </chakra.dd>
          </Fragment>
        ))}
      </Grid>
      <HStack justify="space-between">
        <Text color="fg.muted" fontSize="sm">
          For version {preview.data.seen.version} of the job. No run is undone, and nothing is read again.
        </Text>
        <Button size="xs" variant="outline" onClick={onLookAgain}>
          Look again
        </Button>
      </HStack>
    </Stack>
  );
}
