import { Input, InputGroup, Kbd } from "@chakra-ui/react";
import { useEffect, useRef, useState } from "react";
import { LONGEST_SEARCH } from "./listQuery";

const PAUSE_MS = 250;

interface SearchFieldProps {
  value: string;
  onSearch: (text: string) => void;
}

/** Search jobs by what one types, as soon as one pauses. The key `/` leads here from anywhere on the page. */
export function SearchField({ value, onSearch }: SearchFieldProps) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const field = useRef<HTMLInputElement>(null);
  useSlash(field);
  // The address changes from elsewhere too: the way back, or a filter that is cleared. What was sent from here arrives
  // there some moments later, when more may have been typed.
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      onSearch(text);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, onSearch]);
  return (
    <InputGroup flex="1 1 14rem" maxW="28rem" endElement={text === "" ? <Kbd size="sm">/</Kbd> : undefined}>
      <Input
        ref={field}
        type="search"
        size="sm"
        aria-label="Search jobs, DAGs and tasks"
        aria-keyshortcuts="/"
        placeholder="Search jobs, DAGs, tasks"
        maxLength={LONGEST_SEARCH}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </InputGroup>
  );
}

function useSlash(field: React.RefObject<HTMLInputElement | null>) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [field]);
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea, select"));
}
