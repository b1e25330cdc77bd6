import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router-dom";
import { type Asked, addressWith, askedBy } from "./asked";

/** Return what the address asks for, and what changes it; who types words leaves no trail in the history. */
export function useAsked(): [Asked, (change: Partial<Asked>) => void] {
  const [address, setAddress] = useSearchParams();
  const asked = useMemo(() => askedBy(address), [address]);
  const ask = useCallback(
    (change: Partial<Asked>) =>
      setAddress((now) => addressWith(now, change), { replace: change.search !== undefined && change.search !== "" }),
    [setAddress],
  );
  return [asked, ask];
}
