import { Code, Field, Input, Text, Textarea } from "@chakra-ui/react";
import { isNameTyped, lackOfReason } from "./changeSpec";

interface ReasonFieldProps {
  reason: string;
  onReason: (reason: string) => void;
  isFirst?: boolean;
}

/** Say why: it is kept with who and when. */
export function ReasonField({ reason, onReason, isFirst }: ReasonFieldProps) {
  const lack = lackOfReason(reason);
  return (
    <Field.Root required invalid={reason !== "" && lack !== undefined}>
      <Field.Label>
        Reason <Field.RequiredIndicator />
      </Field.Label>
      <Textarea
        rows={2}
        autoresize
        data-first={isFirst ? "" : undefined}
        value={reason}
        onChange={(event) => onReason(event.currentTarget.value.replace(/\s*[\r\n\t]\s*/g, " "))}
      />
      <Field.HelperText>
        Stored with your name and the time, and visible to everyone who can see the job.
      </Field.HelperText>
      {lack !== undefined && <Field.ErrorText>Enter {lack}.</Field.ErrorText>}
    </Field.Root>
  );
}

interface NameFieldProps {
  job: string;
  typed: string;
  onTyped: (typed: string) => void;
}

/** Have the name of the job typed out, so that nobody changes another one than they mean. */
export function NameField({ job, typed, onTyped }: NameFieldProps) {
  const words = { label: "Type the name of the job to confirm: ", wrong: "That is not the name of this job." };
  return <TypedField {...words} wanted={job} typed={typed} onTyped={onTyped} />;
}

interface TypedFieldProps {
  label: string;
  /** What is to be typed. */
  wanted: string;
  /** What is said of anything else. */
  wrong: string;
  typed: string;
  onTyped: (typed: string) => void;
}

/** Have something typed out to confirm it. */
export function TypedField({ label, wanted, wrong, typed, onTyped }: TypedFieldProps) {
  return (
    <Field.Root required invalid={typed !== "" && !wanted.startsWith(typed.trim())}>
      <Field.Label display="block">
        <Text as="span">{label}</Text>
        <Code wordBreak="break-all">{wanted}</Code> <Field.RequiredIndicator />
      </Field.Label>
      <Input
        autoCapitalize="off"
        autoComplete="off"
        autoCorrect="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => onTyped(event.currentTarget.value)}
        data-confirmed={isNameTyped(wanted, typed)}
      />
      <Field.ErrorText>{wrong}</Field.ErrorText>
    </Field.Root>
  );
}
