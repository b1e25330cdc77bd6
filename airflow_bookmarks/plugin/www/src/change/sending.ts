import { useCallback, useRef, useState } from "react";

/** What became of something that was sent. */
export type Sent<T> =
  | { phase: "open" }
  | { phase: "sending" }
  | { phase: "refused"; error: Error }
  | { phase: "done"; answer: T };

export interface Sending<T> {
  sent: Sent<T>;
  isSending: boolean;
  /** Send it, unless it is under way. */
  send: (make: () => Promise<T>) => void;
  /** Forget a refusal. */
  reopen: () => void;
}

/** Send something once, however often one clicks. */
export function useSending<T>(): Sending<T> {
  const [sent, setSent] = useState<Sent<T>>({ phase: "open" });
  // Two clicks may come before the page is drawn anew, so the button alone does not hold the second one back.
  const isUnderWay = useRef(false);
  const send = useCallback((make: () => Promise<T>) => {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    setSent({ phase: "sending" });
    make()
      .then(
        (answer) => setSent({ phase: "done", answer }),
        (error: unknown) =>
          setSent({ phase: "refused", error: error instanceof Error ? error : new Error(String(error)) }),
      )
      .finally(() => {
        isUnderWay.current = false;
      });
  }, []);
  const reopen = useCallback(() => setSent({ phase: "open" }), []);
  return { sent, isSending: sent.phase === "sending", send, reopen };
}
