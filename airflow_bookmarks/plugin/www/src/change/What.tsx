import { Stack, Text } from "@chakra-ui/react";
import type { Job, RunRow } from "../api/model";
import { CleanChoice } from "./CleanChoice";
import { ContextChoice } from "./ContextChoice";
import { type Draft, lackOfClean } from "./changeSpec";
import { PointChoice } from "./PointChoice";
import { RunChoice } from "./RunChoice";
import { UndoneChange } from "./UndoneChange";

interface WhatProps {
  job: Job;
  picked: RunRow | undefined;
  draft: Draft;
  onDraft: (draft: Draft) => void;
}

/** The first step: what is to be changed. */
export function What({ job, picked, draft, onDraft }: WhatProps) {
  if (draft.kind === "undo") {
    return (
      <Stack gap={2}>
        <Text>
          The job goes back to where it was before its last reset, rewind, set, delete or undo. Runs since then are
          undone.
        </Text>
        <UndoneChange job={job.job} />
      </Stack>
    );
  }
  if (draft.kind === "delete") {
    return (
      <Stack gap={4}>
        <Text>
          The job loses its bookmark and disappears from the list until it runs again. That run reads everything, and
          run numbers continue. Jobs that read this one will see it as rewound. Undo restores the bookmark.
        </Text>
        <CleanChoice
          isClean={draft.clean}
          obstacle={lackOfClean(draft, job)}
          onClean={(clean) => onDraft({ ...draft, clean })}
        />
      </Stack>
    );
  }
  if (draft.kind === "set") return <PointChoice job={job} draft={draft} onDraft={onDraft} />;
  const known = knownContexts(job, picked);
  return (
    <Stack gap={4}>
      {draft.kind === "reset" ? (
        <Text>The job goes back to before its first run: the next run reads everything.</Text>
      ) : (
        <RunChoice
          job={job.job}
          picked={picked}
          toRun={draft.toRun}
          onRun={(run) => onDraft({ ...draft, toRun: run?.number ?? null })}
        />
      )}
      {known.length > 0 && (
        <ContextChoice known={known} chosen={draft.contexts} onChosen={(contexts) => onDraft({ ...draft, contexts })} />
      )}
      <CleanChoice
        isClean={draft.clean}
        obstacle={lackOfClean(draft, job)}
        onClean={(clean) => onDraft({ ...draft, clean })}
      />
    </Stack>
  );
}

/** A run may have read contexts that the job has lost since. */
function knownContexts(job: Job, picked: RunRow | undefined): string[] {
  const names = new Set([...job.contexts.map(({ ctx }) => ctx), ...Object.keys(picked?.watermark ?? {})]);
  return [...names].sort();
}
