import { Link } from "@chakra-ui/react";
import { Link as RouterLink, useSearchParams } from "react-router-dom";

interface JobLinkProps {
  job: string;
  /** The request of it to look at. */
  request?: string;
}

/** A link to a job, on the page or the tab that one looks at. */
export function JobLink({ job, request }: JobLinkProps) {
  const [search] = useSearchParams();
  const next = new URLSearchParams({ job, ...(request === undefined ? {} : { request }) });
  // The list that one came from is kept, for the way back.
  const from = search.get("from") ?? (search.has("job") ? null : search.toString());
  if (from) next.set("from", from);
  return (
    <Link asChild colorPalette="blue" wordBreak="break-all">
      <RouterLink to={{ search: `?${next}` }}>{job}</RouterLink>
    </Link>
  );
}
