import { NativeSelect } from "@chakra-ui/react";
import { useSearchParams } from "react-router-dom";
import { withPart } from "../address";

interface ContextPickerProps {
  contexts: readonly string[];
  ctx: string | undefined;
}

/** Choose one context of several; with one there is nothing to choose. */
export function ContextPicker({ contexts, ctx }: ContextPickerProps) {
  const [search, setSearch] = useSearchParams();
  if (contexts.length < 2 || ctx === undefined) return null;
  return (
    <NativeSelect.Root size="sm" width="auto" maxW="100%">
      <NativeSelect.Field
        aria-label="Context"
        value={ctx}
        onChange={(event) => setSearch(withPart(search, "ctx", event.currentTarget.value), { replace: true })}
      >
        {contexts.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </NativeSelect.Field>
      <NativeSelect.Indicator />
    </NativeSelect.Root>
  );
}
