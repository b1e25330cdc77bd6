import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router-dom";
import { addressWith, type ListQuery, listQueryOf } from "./listQuery";

/** Return what the address asks for, and what changes it; who types words leaves no trail in the history. */
export function useListQuery(): [ListQuery, (change: Partial<ListQuery>) => void] {
  const [address, setAddress] = useSearchParams();
  const listQuery = useMemo(() => listQueryOf(address), [address]);
  const ask = useCallback(
    (change: Partial<ListQuery>) =>
      setAddress((now) => addressWith(now, change), { replace: change.search !== undefined && change.search !== "" }),
    [setAddress],
  );
  return [listQuery, ask];
}
