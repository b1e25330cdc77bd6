import { Button } from "@chakra-ui/react";
import type { ReactNode, RefObject } from "react";
import type { Changed, Job, Requested } from "../api/model";
import { AnswerView } from "./AnswerView";
import { Frame } from "./Frame";
import type { Sent } from "./sending";
import { TroubleView } from "./TroubleView";

interface OneStepDialogProps {
  job: Job;
  title: string;
  /** The button that sends it. */
  name: string;
  colorPalette: "red" | "blue";
  sent: Sent<Changed | Requested>;
  isReady: boolean;
  /** The version that was sent along, for what is said where it is not the present one. */
  version: number;
  onSend: () => void;
  opener: RefObject<HTMLElement | null>;
  onClosed: () => void;
  /** What is about to be done, and the fields. */
  children: ReactNode;
}

/** Do something that needs no preview: what it does, its fields and one button; then the result. */
export function OneStepDialog({ job, title, name, sent, isReady, onSend, children, ...props }: OneStepDialogProps) {
  const isSending = sent.phase === "sending";
  const frame = { title, isSending, opener: props.opener, onClosed: props.onClosed };
  if (sent.phase === "done") {
    return (
      <Frame {...frame}>
        <AnswerView answer={sent.answer} job={job} />
      </Frame>
    );
  }
  return (
    <Frame
      {...frame}
      onSubmit={() => {
        if (isReady) onSend();
      }}
      actions={(form) => (
        <Button
          type="submit"
          form={form}
          colorPalette={props.colorPalette}
          disabled={!isReady}
          loading={isSending}
          loadingText="Sending"
        >
          {name}
        </Button>
      )}
    >
      {children}
      {sent.phase === "refused" && <TroubleView job={job.job} error={sent.error} version={props.version} />}
    </Frame>
  );
}
