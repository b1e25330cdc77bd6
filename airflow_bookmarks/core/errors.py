"""The errors of this package: one hierarchy, each with what happened, what was left untouched and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


_NAME_SHOWN = 200  # characters of the name of a source in a message


class BookmarkError(Exception):
    """Base of every error that this package raises on purpose."""


class OptionError(BookmarkError, ValueError):
    """Raised when an option, setting or argument is unknown, misspelt, half given or contradicts another."""


_PREFIXES_ALONE = "the API server looks at files only below the prefixes that its setting [bookmarks] look_below lists"


class LookRefusedError(OptionError):
    """Raised when this process may not look: the API server at files outside of its prefixes, and at any database."""

    def __init__(self, place: str, why: str = _PREFIXES_ALONE) -> None:
        super().__init__(
            f"{redacted(place)!r} was not looked at, so what is there is not known: {why}. Nothing was read or "
            "changed. The command line looks, with the rights of its caller, and has the same verbs: "
            "'airflow-bookmarks pending' or 'lag', and every change, of which --dry-run only tells what it would do."
        )

    @classmethod
    def of_database(cls, place: str) -> LookRefusedError:
        """Return the error about a database, or about a sink that is not files."""
        return cls(place, "the API server connects to no database or sink that a job names")


class TooLargeHereError(BookmarkError):
    """Raised when something stored is larger than this process unpacks at a time: in the API server others wait."""

    def __init__(self, what: str, has: str, most: str) -> None:
        super().__init__(
            f"a stored {what} has {has}, and the API server unpacks {most} at a time, so that others are answered "
            "meanwhile. Nothing was read or changed. The command line unpacks it, and has the same verbs."
        )


class ExportRefusedError(BookmarkError):
    """Raised when the API server hands out no export of a job: it is too large, or holds what the user may not see."""


class NameInvalidError(BookmarkError, ValueError):
    """Raised when the name of a job, context, output, namespace or run cannot be used in a key or a path."""


class MisuseError(BookmarkError):
    """Raised when a run is used in an order that has no meaning: read after commit, commit twice, one name twice."""


# ---- the store


class StoreError(BookmarkError):
    """Raised when the state store cannot do what it was asked."""


class StoreUnavailableError(StoreError):
    """Raised when the store did not answer, or throttled, for longer than the stated limit."""


class StoreThrottledError(StoreUnavailableError):
    """Raised when the store throttled for longer than the stated limit: it answers, and takes no more requests."""


class StoreAccessError(StoreError):
    """Raised when credentials are missing, wrong or not allowed to do this, or the region has no such table."""


class TableMissingError(StoreError):
    """Raised when the state table, or the SQLite file, does not exist: an absent table is never an empty bookmark."""


class TableLayoutError(StoreError):
    """Raised when the table has other keys, or a schema version that this package does not know."""


class StateCorruptError(StoreError):
    """Raised when stored bytes do not match their checksum, or a part of them is missing."""


class ConditionFailedError(StoreError):
    """Raised when a condition of a transaction did not hold; nothing of the transaction was written.

    `failed` maps the index of each operation whose condition failed to the item that was there (None: no item).
    It may be the trace of an own success whose reply was lost: the caller reads back before it believes it.
    """

    def __init__(self, failed: Mapping[int, Mapping[str, object] | None]) -> None:
        super().__init__(f"a condition did not hold at operation(s) {sorted(failed)}; nothing was written")
        self.failed = dict(failed)


# ---- who may run


class JobBusyError(BookmarkError):
    """Raised when another run holds the lease of the job."""

    def __init__(self, job: str, holder: str, attempt: int, since: datetime, until: datetime) -> None:
        super().__init__(
            f"job {job!r} is being worked on by {holder!r} (attempt {attempt}) since {since.isoformat()}, and its "
            f"lease holds until {until.isoformat()}. Nothing was read or changed. Let it end (a run waits for it with "
            "BookmarkedJob(..., on_conflict='wait'), a task with bookmark_on_conflict='wait' of its operator); or, if "
            f"you know that it is dead, 'airflow-bookmarks unlock {job} --reason \"...\"' (a change takes --force), or "
            "let the lease run out."
        )
        self.job, self.holder, self.attempt, self.since, self.until = job, holder, attempt, since, until


class ShardsBusyError(BookmarkError):
    """Raised when runs hold virtual shards of a sharded job that is to be changed; nothing was changed in any."""

    def __init__(self, job: str, busy: Sequence[JobBusyError]) -> None:
        held = ", ".join(f"{each.job!r} by {each.holder!r}" for each in busy[:3])
        more = f" and {len(busy) - 3} more" if len(busy) > 3 else ""
        holders = "a run holds one" if len(busy) == 1 else f"runs hold {len(busy)}"
        them, dead = ("it", "it is dead") if len(busy) == 1 else ("them", "they are dead")
        super().__init__(
            f"sharded job {job!r}: {holders} of its virtual shards: {held}{more}. Nothing was changed in any shard. "
            f"Let {them} end; or, if you know that {dead}, change it with --force (force=True), which fences {them}."
        )
        self.job, self.busy = job, tuple(busy)


class ShardsLeftError(BookmarkError):
    """Raised when a change of a sharded job was made in some of its virtual shards, and refused in others."""

    def __init__(
        self, job: str, kind: str, done: Sequence[str], left: Sequence[str], refused: Mapping[str, BookmarkError]
    ) -> None:
        why = " ".join(f"{shard}: {error}" for shard, error in refused.items())
        super().__init__(
            f"sharded job {job!r}: the {kind} was made in {len(done)} of its virtual shards, and not in {len(left)}: "
            f"{', '.join(left)}. The same {kind} again takes those that are left, and leaves the others as they are, "
            f"unless they have run since. What happened: {why}"
        )
        self.job, self.done, self.left, self.refused = job, tuple(done), tuple(left), dict(refused)


class BackfillStoppedError(BookmarkError):
    """Raised when a backfill took some jobs back, and was refused at another.

    `done` are the jobs that went back, `left` those that did not, both in order: the refused `job` is the first of the
    latter, and `error` says why.
    """

    def __init__(self, job: str, done: Sequence[str], left: Sequence[str], error: BookmarkError) -> None:
        went = f"these went back: {', '.join(done)}" if done else "no job went back"
        super().__init__(
            f"the backfill stopped at job {job!r}: {went}; these did not: {', '.join(left)}. The same backfill again "
            "goes on with those, and leaves the others as they are, unless they have run since. To take it back, undo "
            f"those that went back, the last one first: 'airflow-bookmarks undo JOB'. What happened: {error}"
        )
        self.job, self.done, self.left, self.error = job, tuple(done), tuple(left), error


class PartitionsFailedError(BookmarkError):
    """Raised at the end of a loop over partitions (`job.partitions`) if some failed: these stay where they were.

    `failed` are their exceptions by name ("region='eu'"); they are chained as an `ExceptionGroup`.
    """

    def __init__(self, job: str, failed: Mapping[str, Exception]) -> None:
        self.failed = dict(failed)
        named = "; ".join(f"{name}: {cause_of(error)}" for name, error in failed.items())
        is_one = len(failed) == 1
        stays = "stays where it was" if is_one else "stay where they were"
        ones = "the failed one" if is_one else "the failed ones"
        super().__init__(
            f"job {job!r}: {counted(len(failed), 'partition')} failed, and {stays}; all others are committed. A retry "
            f"reads {ones} alone. {named}"
        )


class FencedError(BookmarkError):
    """Raised when this driver lost the job: its lease was taken over, or it was killed, or the job was reset."""


class AttemptRefusedError(BookmarkError):
    """Raised when an attempt may not begin: it was killed, or a higher attempt of its execution was seen already."""


class OwnerError(BookmarkError):
    """Raised when a run of one DAG begins under the name of a job that belongs to another DAG."""


# ---- runs and history


class RunUnknownError(BookmarkError, LookupError):
    """Raised when a run number or run id names no run of this job."""


class JobUnknownError(BookmarkError, LookupError):
    """Raised when the namespace has no bookmark of that name."""


class NotCommittedError(BookmarkError):
    """Raised when a job ended and left no commit: success means published."""


class PublishError(BookmarkError):
    """Raised when what a run staged can't be made visible; a committed run stays committed, its publish due."""


class OutOfBoundsError(BookmarkError):
    """Raised when state names a file or folder that its job may neither move nor delete.

    `item` is the item that names it, `path` what it names, `why` the rule that it breaks.
    """

    _ADVICE = (
        "Somebody has changed the state, or it was made for another place: 'airflow-bookmarks doctor' lists all such "
        "paths; restore the item from a backup, or import an export of the job."
    )

    def __init__(self, job: str, item: str, path: str, why: str, advice: str | None = None) -> None:
        super().__init__(
            f"job {job!r}: {item} names {path!r}, which this job may not touch: {why}. Nothing was moved, deleted or "
            f"swept. {advice or self._ADVICE}"
        )
        self.job, self.item, self.path, self.why = job, item, path, why


class SinkUnknownError(BookmarkError):
    """An earlier run wrote to a sink of a kind that is not known here: neither given up nor finished."""


class SourceUnknownError(BookmarkError):
    """Raised when an open run reads a source of a kind that is not known here; it is neither given up nor committed."""


class PartlyLandedError(BookmarkError):
    """Raised when an earlier run has landed in some of its tables only, and nobody has decided yet what becomes of it.

    The run stays open, and its tokens are burned: no late write can change what has landed.
    """

    def __init__(self, job: str, number: int, landed: Sequence[str], missing: Sequence[str]) -> None:
        rows = "; ".join(landed)
        super().__init__(
            f"job {job!r}: run {number} ended between its tables: its rows are in {rows}, and not in "
            f"{'; '.join(missing)}. Nothing was read, written or given up. Decide what becomes of it, then run the job "
            f"again: 'airflow-bookmarks settle {job} --run {number} --as committed --reason \"...\"' keeps what is "
            "there and goes on behind it; with --as given-up the next run reads the same input again, so take back by "
            "hand what has landed before that."
        )
        self.job, self.number, self.landed, self.missing = job, number, tuple(landed), tuple(missing)


class ManifestError(BookmarkError):
    """Raised when the manifest of a plan can't be written; nothing was read, and the bookmark has not moved."""


class ChangeRefusedError(BookmarkError):
    """Raised when a reset, rewind, set, undo or replay can't be done; nothing was changed."""


class CleanRefusedError(ChangeRefusedError):
    """Raised when what undone runs published can't be removed; `why` gives the reason, without the remedy."""

    def __init__(self, job: str, why: str, instead: str) -> None:
        super().__init__(f"job {job!r}: {why}. Nothing was changed. {instead}")
        self.job, self.why = job, why


class ProtectedError(BookmarkError):
    """Raised when a protected job is to be changed without the approval of a second person."""


class ChangedMeanwhileError(BookmarkError):
    """Raised when the state moved between the preview of a reset or rewind and the change itself."""


# ---- sources


class SourceError(BookmarkError):
    """Raised when a source cannot be planned or read."""


class LookFailedError(SourceError):
    """Raised when the process that reads files for the API server broke one of its limits, or ended."""


class UnknownRunsError(BookmarkError):
    """Raised when a first run would append to files of runs that the store does not know: its bookmark may be lost."""


class SourceMissingError(SourceError):
    """Raised when the path or upstream job of a source does not exist."""


class FolderVanishedError(SourceError):
    """Raised when a folder goes while the folder above it is listed: nobody knows what else is not listed."""


class SourceChangedError(SourceError):
    """Raised when planned files changed or went before the commit."""


def _cut(text: str) -> str:
    """Return a name as it fits in a message."""
    return text if len(text) <= _NAME_SHOWN else f"{text[:_NAME_SHOWN]}..."


class SourceSwitchedError(SourceError):
    """Raised when a context reads from another source than the one that its position belongs to."""

    def __init__(self, job: str, ctx: str, stored: str, given: str, *, keeps_elsewhere: bool = True) -> None:
        instead = (
            ", 'keep' goes on from the stored position: what lies under other paths than before is read, also where it "
            "is a copy. If the same files lie in another place now, .files(moved_from='<the old folder>') or "
            f"'airflow-bookmarks relocate {job} {ctx} --from OLD --to NEW' lets them count as read."
            if keeps_elsewhere
            else ". 'keep' is refused here: from that position rows of the new source would be left out unread."
        )
        super().__init__(
            f"job {job!r}, context {ctx!r}: its bookmark is of the source {_cut(stored)!r}, and it is read from "
            f"{_cut(given)!r} now. Nothing was read or changed: the position of one source says nothing of another. "
            "Give the new source a context of its own; or read(ctx, on_source_change='reset') starts it from the "
            f"beginning{instead}"
        )
        self.job, self.ctx, self.stored, self.given = job, ctx, stored, given


class DatabaseError(BookmarkError):
    """Raised when a database can't be reached, or refuses a statement; its text is redacted.

    `code` is what the database calls the error: an SQLSTATE of PostgreSQL ("42P01"), a number of MySQL and MariaDB
    ("1146"), a name of SQLite ("SQLITE_BUSY"); None where it said none. `is_lost` is True where the connection broke,
    so that whether the last statement took effect is not known.
    """

    def __init__(self, message: str, code: str | None = None, *, is_lost: bool = False) -> None:
        super().__init__(message)
        self.code, self.is_lost = code, is_lost


class SchemaUnknownError(SourceError):
    """Raised when an empty increment has no schema: none was given and no earlier run recorded one."""


class SchemaChangedError(SourceError):
    """Raised when columns went or have another type than in the runs before, or than in other files of the same run."""


class OverwrittenError(SourceError):
    """Raised with `on_overwrite="error"` when files that were read before have another version now."""


class UnmatchedError(SourceError):
    """Raised when names of files that are to be read do not match `sequence`, and `on_unmatched` is "error"."""


class QuarantineFullError(SourceError):
    """Raised when more files of a context can't be parsed than a quarantine is meant for."""

    def __init__(self, files: int, size_bytes: int, most_files: int, most_bytes: int) -> None:
        super().__init__(
            f"{counted(files, 'file')} can't be parsed, {counted(size_bytes, 'byte')} to remember; a quarantine is for "
            f"{counted(most_files, 'file')} and {counted(most_bytes, 'byte')} at most. Nothing was committed or "
            "published, nothing more is quarantined. So many at once are mostly of another format or schema than the "
            "job says: look at them, and at what the job says. "
            "To read what is quarantined already again, set its context to 'retry:*'; to be done with it, remove or "
            "replace the files and do the same."
        )
        self.files, self.size_bytes = files, size_bytes


class UpstreamRewoundError(SourceError):
    """Raised when an upstream job was reset, rewound or replayed at or below what this job has consumed."""

    def __init__(self, job: str, upstream: str, consumed: int, target: int, way: str) -> None:
        back = f"run {target}" if target else "before its first run"
        super().__init__(
            f"REWOUND: upstream {upstream!r} went back to {back}, and job {job!r} has consumed it up to run "
            f"{consumed}. Nothing was read or changed, and each further run ends here until it is decided. Decide with "
            f".upstream(..., on_rewind=...): 'rewind' takes {job!r} back along, removes what its undone runs "
            "published, and reads on from there; 'rewind_keep' leaves that; 'ignore' keeps what was consumed and takes "
            f"note. {way}."
        )
        self.job, self.upstream, self.consumed, self.target = job, upstream, consumed, target


class UpstreamReplayedError(SourceError):
    """Raised when a run of an upstream job that was consumed has another output since."""

    def __init__(self, job: str, upstream: str, consumed: int, replayed: int, way: str) -> None:
        super().__init__(
            f"REPLAYED: run {replayed} of upstream {upstream!r} was replayed, so its output is another one than job "
            f"{job!r} has read; that has consumed it up to run {consumed}. Nothing was read or changed, and each "
            f"further run ends here until it is decided. Decide with .upstream(..., on_rewind=...): 'rewind' takes "
            f"{job!r} back to before it read run {replayed}, removes what its undone runs published, and reads on from "
            f"there; 'rewind_keep' leaves that; 'ignore' keeps what was consumed and takes note. {way}."
        )
        self.job, self.upstream, self.consumed, self.replayed = job, upstream, consumed, replayed


class RewindAlongRefusedError(SourceError):
    """Raised when a consumer is to go back along with its upstream, and what it published since can't be removed."""

    def __init__(self, job: str, upstream: str, target: int, why: str, by_hand: str | None = None) -> None:
        by = "" if by_hand is None else f"; 'airflow-bookmarks {by_hand} --clean', by hand, removes them all the same"
        super().__init__(
            f"REWOUND: upstream {upstream!r} went back to run {target}, and job {job!r} can't go back along with "
            f"on_rewind='rewind', which removes what its undone runs published: {why}. Nothing was read or "
            "changed. Choose: 'rewind_keep' goes back along and leaves those rows in place, so an append target has "
            f"them twice until they are removed by hand; 'ignore' keeps what was consumed and takes note{by}."
        )
        self.job, self.upstream, self.target, self.why = job, upstream, target, why


# ---- versions


class VersionMismatchError(BookmarkError):
    """Raised when worker, driver, PySpark packages or table layout have versions that do not go together."""


# ---- what a job expects


class ExpectationError(BookmarkError):
    """Raised when an expectation of a script (`job.expect`) fails: the run can't commit any more."""

    def __init__(self, job: str, message: str) -> None:
        super().__init__(
            f"job {job!r}: expectation failed: {message}. Nothing was committed or published. Mend the input or the "
            "expectation and run it again: it reads the same input."
        )
        self.job, self.message = job, message


# ---- people and names


class ApprovalError(BookmarkError):
    """Raised when a request for a change can't be made, approved or rejected: by this person, or at this time."""


class RequestUnknownError(BookmarkError, LookupError):
    """Raised when an id names no request of this job."""


class NameTakenError(BookmarkError):
    """Raised when a job is to get a name that is another job's already."""


class DocumentError(BookmarkError, ValueError):
    """Raised when an exported document can't be imported: damaged, or of a format that this version does not know."""
