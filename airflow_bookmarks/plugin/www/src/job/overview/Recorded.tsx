import { Text } from "@chakra-ui/react";
import { Ago } from "../../parts/Ago";
import { recordedWords } from "./pending";

interface RecordedProps {
  row: { recorded_by?: number | null; recorded_at?: string | null };
}

/** Which run recorded the figures of a row, and when; nothing where they were looked up now. */
export function Recorded({ row }: RecordedProps) {
  const said = recordedWords(row);
  if (said === undefined) return null;
  return (
    <Text fontSize="xs" color="fg.muted" wordBreak="break-word">
      {said}, <Ago at={row.recorded_at ?? null} />. Newer input not included.
    </Text>
  );
}
