import { type RefObject, useEffect, useRef } from "react";

/**
 * Return the reference of what takes the place of a form: the button that was pressed is gone, and what it did is what is
 * to be read next, from its top.
 */
export function useReadFirst<T extends HTMLElement>(): RefObject<T | null> {
  const box = useRef<T>(null);
  useEffect(() => {
    box.current?.focus({ preventScroll: true });
    box.current?.scrollIntoView({ block: "start" });
  }, []);
  return box;
}
