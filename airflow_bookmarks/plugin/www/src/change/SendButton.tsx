import { Button, Text } from "@chakra-ui/react";
import { inSentence } from "./words";

interface SendButtonProps {
  form: string;
  /** What the change is called; undefined while something is missing to make it one. */
  name: string | undefined;
  seen: { needsApproval: boolean } | undefined;
  missing: readonly string[];
  /** Why there is no preview, and so no change; null where there is no such reason. */
  refusal: Error | null;
  isSending: boolean;
}

/** The button that does it, with the name of what it does, and what is missing for it. */
export function SendButton({ form, name, seen, missing: fields, refusal, isSending }: SendButtonProps) {
  const said = name ?? "Apply";
  const missing = seen === undefined && name !== undefined ? ["the preview"] : fields;
  return (
    <>
      <Button
        type="submit"
        form={form}
        colorPalette={seen?.needsApproval ? "blue" : "red"}
        disabled={seen === undefined || missing.length > 0}
        loading={isSending}
        loadingText="Sending"
        maxW="100%"
        whiteSpace="normal"
        height="auto"
        minH={10}
        py={1}
        wordBreak="break-word"
        aria-describedby={`${form}-missing`}
        data-testid="change-send"
      >
        {seen?.needsApproval ? `Request: ${inSentence(said)}` : said}
      </Button>
      <Text id={`${form}-missing`} role="status" w="100%" textAlign="end" color="fg.muted" fontSize="sm" order={-1}>
        {isSending ? "" : (refusal?.message ?? lackWords(missing))}
      </Text>
    </>
  );
}

function lackWords(missing: readonly string[]): string {
  return missing.length > 0 ? `Required: ${missing.join(", ")}.` : "";
}
