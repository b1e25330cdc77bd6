import { Field, Switch } from "@chakra-ui/react";

interface CleanChoiceProps {
  isClean: boolean;
  /** Whether all contexts are meant: otherwise there is nothing to clean. */
  isPossible: boolean;
  onClean: (isClean: boolean) => void;
}

/** Choose whether what the undone runs wrote goes too. */
export function CleanChoice({ isClean, isPossible, onClean }: CleanChoiceProps) {
  return (
    <Field.Root disabled={!isPossible}>
      <Switch.Root
        checked={isClean && isPossible}
        disabled={!isPossible}
        onCheckedChange={({ checked }) => onClean(checked)}
      >
        <Switch.HiddenInput />
        <Switch.Control />
        <Switch.Label>Also remove what the undone runs wrote</Switch.Label>
      </Switch.Root>
      <Field.HelperText>
        {isPossible
          ? "The next run first removes exactly the files that the undone runs published. This can't be undone."
          : "A change of some contexts undoes no run, so there is nothing to remove."}
      </Field.HelperText>
    </Field.Root>
  );
}
