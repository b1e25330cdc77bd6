import { Field, Switch } from "@chakra-ui/react";

interface CleanChoiceProps {
  isClean: boolean;
  /** Why nothing can be cleaned; null: it can. */
  obstacle: string | null;
  onClean: (isClean: boolean) => void;
}

/** Choose whether what the undone runs wrote goes too. */
export function CleanChoice({ isClean, obstacle, onClean }: CleanChoiceProps) {
  const isPossible = obstacle === null;
  return (
    <Field.Root disabled={!isPossible}>
      <Switch.Root
        checked={isClean && isPossible}
        disabled={!isPossible}
        onCheckedChange={({ checked }) => onClean(checked)}
      >
        <Switch.HiddenInput />
        <Switch.Control />
        <Switch.Label>Remove the undone runs' output to avoid duplicates</Switch.Label>
      </Switch.Root>
      <Field.HelperText>
        {obstacle ?? "The next run first removes exactly what the undone runs published. This can't be undone."}
      </Field.HelperText>
    </Field.Root>
  );
}
