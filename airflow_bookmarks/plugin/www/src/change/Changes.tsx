import { Button, HStack, Text } from "@chakra-ui/react";
import { useRef, useState } from "react";
import type { Job, RunRow } from "../api/model";
import { BackfillDialog } from "./BackfillDialog";
import { ChangeDialog } from "./ChangeDialog";
import type { Kind } from "./changeSpec";
import { ExportButton } from "./ExportButton";
import { OwnerDialog } from "./OwnerDialog";
import type { OwnerKind } from "./owner";
import { ProtectDialog } from "./ProtectDialog";
import { ShardedDialog } from "./ShardedDialog";
import { UnlockDialog } from "./UnlockDialog";

interface ChangesProps {
  job: Job;
  /** The run that was picked to rewind to, on the timeline or in the table. */
  picked: RunRow | undefined;
  onPicked: (run: RunRow | undefined) => void;
}

type Opened = Kind | OwnerKind | "protection" | "unlock" | "backfill";

/** What can be changed of a job: each button opens a dialog that shows what it would do first. */
export function Changes({ job, picked, onPicked }: ChangesProps) {
  const [chosen, setChosen] = useState<Opened>();
  // Who is to lose the job stays who it was when that was asked for: once it is done nobody holds it, or another run.
  const [holder, setHolder] = useState<Job["holder"]>();
  const opener = useRef<HTMLButtonElement>(null);
  if (!job.may_change) return <Text color="fg.muted">{notAllowed(job)}</Text>;
  const kinds = job.is_deleted ? (["undo"] as const) : KINDS.filter((kind) => isOffered(kind, job));
  const isSharded = job.shards != null;
  // To pick a run is to want to go back to it.
  const opened = chosen ?? (picked === undefined ? undefined : "rewind");
  const close = () => {
    opener.current = null;
    setChosen(undefined);
    onPicked(undefined);
  };
  return (
    <>
      <HStack gap={2} flexWrap="wrap">
        <HStack role="group" aria-label="Change this job" gap={2} flexWrap="wrap">
          {kinds.map((kind) => (
            <Button
              key={kind}
              size="sm"
              variant="outline"
              {...(kind === "delete" ? { colorPalette: "red" } : {})}
              aria-haspopup="dialog"
              title={MEANS[kind]}
              onClick={(event) => {
                opener.current = event.currentTarget;
                setHolder(job.holder);
                setChosen(kind);
              }}
            >
              {kind === "protection" && job.protected ? "Request unprotection" : NAMES[kind]}
            </Button>
          ))}
        </HStack>
        {!job.is_deleted && <ExportButton job={job.job} />}
      </HStack>
      {opened === "protection" && <ProtectDialog job={job} opener={opener} onClosed={close} />}
      {opened === "backfill" && <BackfillDialog job={job} opener={opener} onClosed={close} />}
      {opened === "unlock" && holder != null && (
        <UnlockDialog job={job} holder={holder} opener={opener} onClosed={close} />
      )}
      {isOwnerKind(opened) && <OwnerDialog job={job} kind={opened} opener={opener} onClosed={close} />}
      {isSharded && (opened === "reset" || opened === "rewind") && (
        <ShardedDialog job={job} kind={opened} opener={opener} onClosed={close} />
      )}
      {!isSharded && isPreviewed(opened) && (
        <ChangeDialog job={job} kind={opened} picked={picked} opener={opener} onClosed={close} />
      )}
    </>
  );
}

const KINDS = [
  "reset",
  "rewind",
  "backfill",
  "set",
  "undo",
  "unlock",
  "protection",
  "share",
  "unshare",
  "hand-over",
  "delete",
] as const;

const UNLIKE: ReadonlySet<Opened> = new Set(["protection", "unlock", "backfill"]);

function isPreviewed(kind: Opened | undefined): kind is Kind {
  return kind !== undefined && !UNLIKE.has(kind) && !isOwnerKind(kind);
}

function isOwnerKind(kind: Opened | undefined): kind is OwnerKind {
  return kind === "share" || kind === "unshare" || kind === "hand-over";
}

const OF_SHARDS: ReadonlySet<Opened> = new Set(["reset", "rewind", "backfill", "share", "unshare", "hand-over"]);

/** A job of no DAG is nobody's to share, and what is not shared can't be taken back. */
function isOffered(kind: Opened, job: Job): boolean {
  if (job.shards != null && !OF_SHARDS.has(kind)) return false;
  // A sharded job has one owner: a virtual shard is shared and handed over with the others.
  if (job.sharded_job != null && isOwnerKind(kind)) return false;
  if (kind === "unlock") return job.holder != null;
  if (kind === "share") return job.dag_id != null;
  return kind !== "unshare" || job.shared_with.length > 0;
}

const NAMES: Record<Opened, string> = {
  reset: "Reset",
  rewind: "Rewind",
  set: "Set",
  backfill: "Backfill",
  undo: "Undo",
  unlock: "Unlock",
  protection: "Protect",
  share: "Share",
  unshare: "Stop sharing",
  "hand-over": "Hand over",
  delete: "Delete",
};

const MEANS: Record<Opened, string> = {
  reset: "go back to before the first run",
  rewind: "go back to where an earlier run ended",
  set: "move one context to now, to a time or to a run of its upstream",
  backfill: "go back together with everything downstream",
  undo: "reverse the last change",
  unlock: "take the job from a run whose driver is dead",
  protection: "require a second person to approve changes",
  share: "let another DAG run the job too",
  unshare: "stop letting a DAG run the job",
  "hand-over": "give the job to another DAG, or follow a DAG that was renamed",
  delete: "delete the bookmark: the next run reads everything",
};

function notAllowed(job: Job): string {
  const what = job.dag_id == null ? "assets" : `the runs of DAG ${job.dag_id}`;
  return `You can view but not change this job. Changing it requires permission to edit ${what}.`;
}
