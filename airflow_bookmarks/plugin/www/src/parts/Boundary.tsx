import { Alert, Button } from "@chakra-ui/react";
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { Component, type ReactNode, useState } from "react";

interface BoundaryProps {
  /** What is inside, as the beginning of a sentence. */
  what: string;
  children: ReactNode;
}

/** Keep a fault of what is inside from what is around it: it says what happened, and offers to load that part anew. */
export function Boundary({ what, children }: BoundaryProps) {
  const queries = useQueryClient();
  return (
    <Catcher
      instead={(error, onAgain) => (
        <Broken what={what} error={error} onReload={() => loadAnew(queries).then(onAgain)} />
      )}
    >
      {children}
    </Catcher>
  );
}

// What was drawn came from answers that are kept: drawn from the same ones, it would break again.
async function loadAnew(queries: QueryClient): Promise<void> {
  queries.removeQueries({ type: "inactive" });
  await queries.refetchQueries({ type: "active" });
}

interface BrokenProps {
  what: string;
  error: Error;
  onReload: () => Promise<void>;
}

function Broken({ what, error, onReload }: BrokenProps) {
  const [isLoading, setIsLoading] = useState(false);
  return (
    <Alert.Root status="error" role="alert">
      <Alert.Indicator />
      <Alert.Content minW={0}>
        <Alert.Title>{what} can't be shown</Alert.Title>
        <Alert.Description wordBreak="break-word">
          The page has an error: {error.message} The job and the rest of the page are not affected. If loading this part
          again doesn't help, reload the page, and tell whoever maintains airflow-bookmarks.
        </Alert.Description>
      </Alert.Content>
      <Button
        size="sm"
        variant="outline"
        loading={isLoading}
        onClick={() => {
          setIsLoading(true);
          void onReload().finally(() => setIsLoading(false));
        }}
      >
        Load this part again
      </Button>
    </Alert.Root>
  );
}

interface CatcherProps {
  instead: (error: Error, onAgain: () => void) => ReactNode;
  children: ReactNode;
}

interface CatcherState {
  error: Error | undefined;
}

/** React tells only classes of errors below them. */
class Catcher extends Component<CatcherProps, CatcherState> {
  static getDerivedStateFromError(error: unknown): CatcherState {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override state: CatcherState = { error: undefined };

  override render(): ReactNode {
    const { error } = this.state;
    return error === undefined ? this.props.children : this.props.instead(error, this.again);
  }

  private again = () => this.setState({ error: undefined });
}
