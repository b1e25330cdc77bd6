import { Alert, Button } from "@chakra-ui/react";
import { ApiError } from "../api/client";
import { diagnosisOf } from "../api/diagnosis";
import { sentence } from "../words/sentence";

interface ProblemProps {
  error: Error;
  onRetry?: () => void;
}

/** Say what went wrong, what that means, and offer to try again where that may help. */
export function Problem({ error, onRetry }: ProblemProps) {
  const status = error instanceof ApiError ? error.status : undefined;
  const { title, advice } = diagnosisOf(error);
  const isFinal = status === 401 || status === 403 || status === 404;
  return (
    <Alert.Root status={isFinal ? "warning" : "error"} role="alert">
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title>{title}</Alert.Title>
        <Alert.Description wordBreak="break-word">
          {[sentence(error.message), ...(advice ? [advice] : [])].join(" ")}
        </Alert.Description>
      </Alert.Content>
      {onRetry && !isFinal && (
        <Button size="sm" variant="outline" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert.Root>
  );
}
