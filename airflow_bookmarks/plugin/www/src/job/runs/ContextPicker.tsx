import { NativeSelect } from "@chakra-ui/react";
import { useSearchParams } from "react-router-dom";
import { withPart } from "../address";

interface ContextPickerProps {
  contexts: readonly string[];
  ctx: string | undefined;
  /** What it is called to take all of them, where that can be chosen. */
  all?: string;
}

/** Choose one context of several; with one there is nothing to choose. */
export function ContextPicker({ contexts, ctx, all }: ContextPickerProps) {
  const [search, setSearch] = useSearchParams();
  if (contexts.length < 2 || (ctx === undefined && all === undefined)) return null;
  const pick = (picked: string) => setSearch(withPart(search, "ctx", picked || undefined), { replace: true });
  return (
    <NativeSelect.Root size="sm" width="auto" maxW="100%">
      <NativeSelect.Field aria-label="Context" value={ctx ?? ""} onChange={(event) => pick(event.currentTarget.value)}>
        {all !== undefined && <option value="">{all}</option>}
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
