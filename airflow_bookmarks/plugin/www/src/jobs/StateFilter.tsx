import { NativeSelect } from "@chakra-ui/react";
import { STATES, type State } from "./listQuery";

interface StateFilterProps {
  value: State | undefined;
  onState: (state: State | undefined) => void;
}

/** Choose of which state the jobs are that are listed. */
export function StateFilter({ value, onState }: StateFilterProps) {
  return (
    <NativeSelect.Root size="sm" width="auto" minW="9rem">
      <NativeSelect.Field
        aria-label="Filter by state"
        value={value ?? ""}
        onChange={(event) => onState(STATES.find((each) => each === event.currentTarget.value))}
      >
        <option value="">All states</option>
        {STATES.map((state) => (
          <option key={state} value={state}>
            {state}
          </option>
        ))}
      </NativeSelect.Field>
      <NativeSelect.Indicator />
    </NativeSelect.Root>
  );
}
