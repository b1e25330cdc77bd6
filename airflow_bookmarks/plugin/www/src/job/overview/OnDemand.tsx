import { Button, Skeleton } from "@chakra-ui/react";
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Problem } from "../../parts/Problem";
import { Section } from "../../parts/Section";

interface OnDemandProps<T> {
  title: string;
  hint: string;
  job: string;
  /** The question about the job, asked as soon as `isWanted`. */
  useAnswer: (job: string, isWanted: boolean) => UseQueryResult<T, Error>;
  children: (answer: T) => ReactNode;
}

/** Something that is looked up when a person asks for it, because folders may be listed for it. */
export function OnDemand<T>({ title, hint, job, useAnswer, children }: OnDemandProps<T>) {
  const [isWanted, setWanted] = useState(false);
  const query = useAnswer(job, isWanted);
  const look = () => (isWanted ? void query.refetch() : setWanted(true));
  const button = (
    <Button
      size="sm"
      variant="outline"
      loading={query.isFetching}
      loadingText="Checking"
      aria-label={`Check now: ${title}`}
      onClick={look}
    >
      Check now
    </Button>
  );
  return (
    <Section title={title} hint={hint} actions={button}>
      {query.error && <Problem error={query.error} onRetry={() => void query.refetch()} />}
      {query.data !== undefined && children(query.data)}
      {query.isLoading && <Skeleton height={16} />}
    </Section>
  );
}
