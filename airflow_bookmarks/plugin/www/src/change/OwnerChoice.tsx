import { Field, Input, RadioGroup, Stack, Text } from "@chakra-ui/react";
import type { Job } from "../api/model";
import { useSettledText } from "../parts/useSettledText";
import { Radio } from "./ContextChoice";
import type { OwnerDraft } from "./owner";

interface OwnerChoiceProps {
  job: Job;
  draft: OwnerDraft;
  onDraft: (draft: Partial<OwnerDraft>) => void;
}

/** The first step of a change of an owner: which DAG, and what it is. */
export function OwnerChoice({ job, draft, onDraft }: OwnerChoiceProps) {
  if (draft.kind === "unshare") {
    return (
      <Stack gap={3}>
        <Text>Runs of that DAG will be refused. One that has already started continues.</Text>
        <RadioGroup.Root
          value={draft.dag === "" ? null : draft.dag}
          onValueChange={({ value }) => onDraft({ dag: value ?? "" })}
        >
          <RadioGroup.Label>DAG</RadioGroup.Label>
          <Stack gap={2} mt={2}>
            {job.shared_with.map((dag) => (
              <Radio key={dag} value={dag}>
                {dag}
              </Radio>
            ))}
          </Stack>
        </RadioGroup.Root>
      </Stack>
    );
  }
  return (
    <Stack gap={4}>
      <Text>{draft.kind === "share" ? SHARE : HAND_OVER}</Text>
      <DagField typed={draft.dag} onTyped={(dag) => onDraft({ dag })} />
      {draft.kind === "hand-over" && (
        <RadioGroup.Root
          value={draft.renamed === null ? null : draft.renamed ? "renamed" : "another"}
          onValueChange={({ value }) => onDraft({ renamed: value === "renamed" })}
        >
          <RadioGroup.Label>This DAG is</RadioGroup.Label>
          <Stack gap={2} mt={2}>
            <Radio value="another">Another DAG: changes will require permission on the current owner as well</Radio>
            <Radio value="renamed">The current owner, renamed: no permission on the old name will be required</Radio>
          </Stack>
        </RadioGroup.Root>
      )}
    </Stack>
  );
}

const SHARE =
  "Another DAG may run the job too. The owner stays the same, and sharing gives no one permissions on this page.";
const HAND_OVER = "The job will belong to the DAG that you enter.";

/** The id of a DAG. */
function DagField({ typed, onTyped }: { typed: string; onTyped: (text: string) => void }) {
  const [text, setText] = useSettledText(typed, onTyped);
  return (
    <Field.Root required>
      <Field.Label>
        DAG <Field.RequiredIndicator />
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
      <Field.HelperText>The DAG id, as shown in Airflow.</Field.HelperText>
    </Field.Root>
  );
}
