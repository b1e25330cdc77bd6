import { QueryClientProvider } from "@tanstack/react-query";
import { newQueryClient } from "./api/queryClient";
import { Shell, type ShellProps } from "./parts/Shell";

const queries = newQueryClient();

/** The page, and the same scoped as a tab: Airflow hands over the DAG and the task it shows, and nothing in its navigation. */
export default function Bookmarks(props: ShellProps) {
  return (
    <QueryClientProvider client={queries}>
      <Shell {...props} />
    </QueryClientProvider>
  );
}
