import { QueryClient } from "@tanstack/react-query";
import { mayHelpToAskAgain } from "./queries";

/**
 * Return the client of all queries.
 *
 * It sends also while the browser says that it is offline: what waits for a network would wait without a word, a change
 * for ever, and a server on this machine answers without one.
 */
export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { retry: mayHelpToAskAgain, staleTime: 5_000, networkMode: "always", refetchOnReconnect: true },
      mutations: { networkMode: "always" },
    },
  });
}
