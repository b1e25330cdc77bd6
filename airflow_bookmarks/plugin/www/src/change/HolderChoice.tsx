import { Alert, Stack, Switch, Text } from "@chakra-ui/react";

interface HolderChoiceProps {
  /** The run id of who holds the job; null: somebody. */
  holder: string | null;
  force: boolean;
  onForce: (force: boolean) => void;
}

/** Choose whether a run that is in the way loses the job. */
export function HolderChoice({ holder, force, onForce }: HolderChoiceProps) {
  return (
    <Alert.Root status="warning">
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title wordBreak="break-word">
          {holder === null ? "A run" : `Run ${holder}`} is using this job
        </Alert.Title>
        <Alert.Description>
          <Stack gap={3} align="flex-start">
            <Text>
              Wait until it finishes, then try again. Or stop it from committing: it then fails, and its input is read
              again.
            </Text>
            <Switch.Root checked={force} onCheckedChange={({ checked }) => onForce(checked)}>
              <Switch.HiddenInput />
              <Switch.Control />
              <Switch.Label>Stop that run from committing</Switch.Label>
            </Switch.Root>
          </Stack>
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}
