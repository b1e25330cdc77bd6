import { Checkbox, CheckboxGroup, Fieldset, RadioGroup, Stack } from "@chakra-ui/react";
import { contextName } from "./setting";

interface ContextChoiceProps {
  known: readonly string[];
  /** null: all of them. */
  chosen: readonly string[] | null;
  onChosen: (contexts: readonly string[] | null) => void;
}

/** Choose whether a change is of all contexts, or of which. */
export function ContextChoice({ known, chosen, onChosen }: ContextChoiceProps) {
  return (
    <Stack gap={3}>
      <RadioGroup.Root
        value={chosen === null ? "all" : "some"}
        onValueChange={({ value }) => onChosen(value === "all" ? null : [])}
      >
        <RadioGroup.Label srOnly>Contexts</RadioGroup.Label>
        <Stack gap={2}>
          <Radio value="all">All contexts</Radio>
          <Radio value="some">Some contexts only: no runs are undone</Radio>
        </Stack>
      </RadioGroup.Root>
      {chosen !== null && (
        <Fieldset.Root ps={6}>
          <Fieldset.Legend srOnly>Which contexts</Fieldset.Legend>
          <CheckboxGroup value={[...chosen]} onValueChange={onChosen}>
            {known.map((ctx) => (
              <Checkbox.Root key={ctx} value={ctx}>
                <Checkbox.HiddenInput />
                <Checkbox.Control />
                <Checkbox.Label wordBreak="break-word">{contextName(ctx)}</Checkbox.Label>
              </Checkbox.Root>
            ))}
          </CheckboxGroup>
        </Fieldset.Root>
      )}
    </Stack>
  );
}

/** One of several choices. */
export function Radio({ value, children }: { value: string; children: string }) {
  return (
    <RadioGroup.Item value={value}>
      <RadioGroup.ItemHiddenInput />
      <RadioGroup.ItemIndicator />
      <RadioGroup.ItemText>{children}</RadioGroup.ItemText>
    </RadioGroup.Item>
  );
}
