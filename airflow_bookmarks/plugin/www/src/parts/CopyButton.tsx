import { Clipboard, IconButton } from "@chakra-ui/react";

/** Copy a text; `what` names it: "job name". */
export function CopyButton({ text, what }: { text: string; what: string }) {
  return (
    <Clipboard.Root value={text} timeout={2000}>
      <Clipboard.Trigger asChild>
        <IconButton variant="ghost" size="xs" aria-label={`Copy ${what}`} title={`Copy ${what}`}>
          <Clipboard.Indicator />
        </IconButton>
      </Clipboard.Trigger>
    </Clipboard.Root>
  );
}
