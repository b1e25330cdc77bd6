import { Alert } from "@chakra-ui/react";
import { useSyncExternalStore } from "react";

/** Say that the browser is offline, for as long as it says so itself. */
export function Offline() {
  const isOnline = useSyncExternalStore(onNetworkChange, () => navigator.onLine);
  if (isOnline) return null;
  return (
    <Alert.Root status="warning" role="status" mb={4}>
      <Alert.Indicator />
      <Alert.Content>
        <Alert.Title>This browser is offline</Alert.Title>
        <Alert.Description>
          What you see may be out of date, and changes can't be sent. The page continues automatically once the
          connection is back.
        </Alert.Description>
      </Alert.Content>
    </Alert.Root>
  );
}

function onNetworkChange(listener: () => void): () => void {
  window.addEventListener("online", listener);
  window.addEventListener("offline", listener);
  return () => {
    window.removeEventListener("online", listener);
    window.removeEventListener("offline", listener);
  };
}
