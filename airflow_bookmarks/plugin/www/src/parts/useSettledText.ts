import { useEffect, useState } from "react";

const PAUSE_MS = 400;

/** Hold what is typed, and tell it as soon as one pauses: each text is asked of the server. */
export function useSettledText(settled: string, onSettled: (text: string) => void) {
  const [text, setText] = useState(settled);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another text begins another pause
  useEffect(() => {
    if (text === settled) return;
    const timer = setTimeout(() => onSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText] as const;
}
