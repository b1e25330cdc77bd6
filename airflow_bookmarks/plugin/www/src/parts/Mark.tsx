import { chakra } from "@chakra-ui/react";
import { timeOfMark } from "../words/mark";
import { inZone } from "../words/time";

interface MarkProps {
  /** A watermark; null and undefined: there is none. */
  mark: string | null | undefined;
  /** The order by which it compares; null and undefined: it is not known. */
  order?: string | null | undefined;
  /** What is said where there is none. */
  none?: string;
}

/** A watermark: a time in the zone that is chosen in Airflow, anything else as it is. */
export function Mark({ mark, order, none = "none" }: MarkProps) {
  if (mark === null || mark === undefined) return <chakra.span color="fg.muted">{none}</chakra.span>;
  const time = timeOfMark(mark, order);
  if (time === undefined) return <chakra.span wordBreak="break-word">{mark}</chakra.span>;
  return (
    <chakra.time dateTime={mark} title={mark} whiteSpace="nowrap">
      {inZone(time)}
    </chakra.time>
  );
}

interface MarkMoveProps {
  before: string | null;
  after: string | null;
  order: string | null | undefined;
}

/** From one watermark to another, as a run or a change moved it. */
export function MarkMove({ before, after, order }: MarkMoveProps) {
  return (
    <>
      <Mark mark={before} order={order} none="the beginning" />
      <chakra.span color="fg.muted" px={1}>
        {" to "}
      </chakra.span>
      <Mark mark={after} order={order} none="the beginning" />
    </>
  );
}
