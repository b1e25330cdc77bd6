import { Button, Skeleton } from "@chakra-ui/react";
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Problem } from "../../parts/Problem";
import { Section } from "../../parts/Section";

interface AskedProps<T> {
  title: string;
  hint: string;
  job: string;
  /** The question about the job, asked as soon as `isWanted`. */
  useAnswer: (job: string, isWanted: boolean) => UseQueryResult<T, Error>;
  children: (answer: T) => ReactNode;
}

/** Something that is looked up when a person asks for it, because folders may be listed for it. */
export function Asked<T>({ title, hint, job, useAnswer, children }: AskedProps<T>) {
  const [isWanted, setWanted] = useState(false);
  const asked = useAnswer(job, isWanted);
  const look = () => (isWanted ? void asked.refetch() : setWanted(true));
  const button = (
    <Button
      size="sm"
      variant="outline"
      loading={asked.isFetching}
      loadingText="Looking"
      aria-label={`Look now: ${title}`}
      onClick={look}
    >
      Look now
    </Button>
  );
  return (
    <Section title={title} hint={hint} actions={button}>
      {asked.error && <Problem error={asked.error} onRetry={() => void asked.refetch()} />}
      {asked.data !== undefined && children(asked.data)}
      {asked.isLoading && <Skeleton height={16} />}
    </Section>
  );
}
