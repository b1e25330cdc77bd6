import { Field, Input } from "@chakra-ui/react";
import type { ReactNode } from "react";
import { useSettledText } from "../parts/useSettledText";

interface PointFieldProps {
  typed: string;
  onTyped: (text: string) => void;
  /** What a point in history may be here. */
  children: ReactNode;
}

/** Type the point in history that a job goes back to. */
export function PointField({ typed, onTyped, children }: PointFieldProps) {
  const [text, setText] = useSettledText(typed, onTyped);
  return (
    <Field.Root required>
      <Field.Label>
        Keep runs up to and including <Field.RequiredIndicator />
      </Field.Label>
      <Input
        data-first
        autoCapitalize="off"
        autoComplete="off"
        autoCorrect="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Field.HelperText wordBreak="break-word">{children}</Field.HelperText>
    </Field.Root>
  );
}
