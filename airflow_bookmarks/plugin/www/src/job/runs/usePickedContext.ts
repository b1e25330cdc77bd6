import { useSearchParams } from "react-router-dom";

/** Return the context that the address names; undefined where it names none that there is. */
export function useNamedContext(contexts: readonly string[]): string | undefined {
  const [search] = useSearchParams();
  const requested = search.get("ctx");
  return contexts.find((ctx) => ctx === requested);
}

/** Return the context that the address names, the first one where it names none that there is. */
export function usePickedContext(contexts: readonly string[]): string | undefined {
  return useNamedContext(contexts) ?? contexts[0];
}
