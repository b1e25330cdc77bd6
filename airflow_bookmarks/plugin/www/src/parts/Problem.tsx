import { Alert, Button } from "@chakra-ui/react";
import { ApiError } from "../api/client";

const TITLES: Record<number, string> = {
  0: "Airflow can't be reached",
  401: "You are logged out",
  403: "You may not see this",
  404: "There is no such job",
  502: "The source can't be read",
  503: "The state store does not answer",
};

interface ProblemProps {
  error: Error;
  onRetry?: () => void;
}

/** Say what went wrong, what that means, and offer to try again where that may help. */
export function Problem({ error, onRetry }: ProblemProps) {
  const status = error instanceof ApiError ? error.status : undefined;
  const isFinal = status === 401 || status === 403 || status === 404;
  return (
    <Alert.Root status={isFinal ? "warning" : "error"} role="alert">
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title>{(status !== undefined && TITLES[status]) || "Something went wrong"}</Alert.Title>
        <Alert.Description wordBreak="break-word">{error.message}</Alert.Description>
      </Alert.Content>
      {onRetry && !isFinal && (
        <Button size="sm" variant="outline" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert.Root>
  );
}
