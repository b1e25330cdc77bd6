import { Alert } from "@chakra-ui/react";
import { count } from "../words/number";

/** Jobs that are not listed yet, though they may be among those that were asked for; nothing where there are none. */
export function Unjudged({ jobs }: { jobs: number | undefined }) {
  if (!jobs) return null;
  return (
    <Alert.Root status="info" role="status">
      <Alert.Indicator />
      <Alert.Title>
        The health of {count(jobs, "more job")} is being read for the first time. Until it is known, they are missing
        from this list and its counts.
      </Alert.Title>
    </Alert.Root>
  );
}
