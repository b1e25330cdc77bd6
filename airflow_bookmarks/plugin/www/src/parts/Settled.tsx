import { type ReactNode, useEffect } from "react";
import { useLocation, useNavigate } from "react-router-dom";

// The address at which the page was mounted first, since it was loaded.
let first: string | undefined;

/**
 * Show the page from its second mount on.
 *
 * Airflow mounts a page that it has just loaded through a lazy component, and at the next change of the address it mounts
 * the page itself, all anew. Whoever types or has just pressed a button would lose the focus, and a dialog what was written
 * into it. So that change is made right away, to the same address, before anything is asked of the server.
 */
export function Settled({ children }: { children: ReactNode }) {
  const { key, pathname, search, hash, state } = useLocation();
  const navigate = useNavigate();
  useEffect(() => {
    if (first !== undefined) return;
    first = key;
    navigate({ pathname, search, hash }, { replace: true, state });
  }, [key, pathname, search, hash, state, navigate]);
  return first === undefined || first === key ? null : children;
}
