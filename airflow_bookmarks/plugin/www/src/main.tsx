import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { mayHelpToAskAgain } from "./api/queries";
import { Shell, type ShellProps } from "./parts/Shell";

const queries = new QueryClient({ defaultOptions: { queries: { retry: mayHelpToAskAgain, staleTime: 5_000 } } });

/** The page, and the same scoped as a tab: Airflow hands over the DAG and the task it shows, and nothing in its navigation. */
export default function Bookmarks(props: ShellProps) {
  return (
    <QueryClientProvider client={queries}>
      <Shell {...props} />
    </QueryClientProvider>
  );
}
