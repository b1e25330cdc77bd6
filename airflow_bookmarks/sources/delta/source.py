"""Delta tables as a source. What is new is found in the log of the table, without Spark."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceSwitchedError
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.reason import BEFORE_START, OVER_BOUND
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sources.delta.excerpt import path_of
from airflow_bookmarks.sources.delta.log import DeltaLog
from airflow_bookmarks.sources.delta.looks import DeltaLooks
from airflow_bookmarks.sources.delta.position import (
    Added,
    DeltaPlan,
    DeltaPosition,
    DeltaRecipe,
    Feed,
    Piece,
    Whole,
)
from airflow_bookmarks.sources.delta.snapshot import DeltaSnapshot, TableState, snapshot_at
from airflow_bookmarks.sources.delta.window import (
    CommitWindow,
    bytes_of,
    changed,
    part_of,
    total_rows,
    window_of,
)
from airflow_bookmarks.sources.source import PlanInput, Recheck
from airflow_bookmarks.sources.tables.versioned import VersionGoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.delta.checkpoint import ReadParquet
    from airflow_bookmarks.sources.delta.commit import Action, DeltaCommit
    from airflow_bookmarks.sources.source import OnSourceChange

log = logging.getLogger(__name__)

KIND = "delta"


class DeltaSource:
    """What is new in one Delta table.

    Args:
        recipe: the table, and how it is read.
        label: what messages begin with.
        read: reads checkpoints; None: nothing here does, so the log has to go back to version 0 to begin.
        on_source_change: what to do where the table is another one than before, in the same place.
        job: the name of the job, and `ctx` of its context, for messages.
        looks: what the batches of a loop have read of the log; None: there is no loop.
    """

    kind = KIND
    format: str | None = None

    def __init__(
        self,
        recipe: DeltaRecipe,
        label: str,
        read: ReadParquet | None,
        on_source_change: OnSourceChange = "error",
        job: str = "",
        ctx: str = "",
        looks: DeltaLooks | None = None,
    ) -> None:
        self.recipe, self._label, self._read_parquet = recipe, label, read
        self._on_source_change, self._job, self._ctx = on_source_change, job, ctx
        self._looks = DeltaLooks() if looks is None else looks
        self._found: bytes | None = None

    def ref(self) -> SourceRef:
        """Return the folder of the table; see `Source.ref`."""
        return SourceRef(self.kind, self.recipe.path)

    def plan(self, found: PlanInput) -> DeltaPlan:
        """Fix the versions that a run reads; see `Source.plan`.

        Raises:
            SourceSwitchedError: it is another table than that of the position. RowsChangedError: rows were changed
                since, and appends are read. VersionGoneError: versions since are no longer in the log.
            SourceMissingError: there is no table. OptionError: it has no change feed.
        """
        self._found = found.position
        table = DeltaLog.open(self.recipe.path, self._looks.commits)
        before = None if found.position is None else DeltaPosition.decode(found.position)
        if before is not None and not self._is_same(table, before):
            return self._planned(table, PlanInput(), None)
        return self._planned(table, found, before)

    def _planned(self, table: DeltaLog, found: PlanInput, before: DeltaPosition | None) -> DeltaPlan:
        if before is None:
            return self._from_beginning(table) if found.start.is_beginning else self._from_start(table, found)
        if before.parts is not None:
            raise before.parts.refused(self._label, "no per=")
        if before.files_read is not None:
            return self._next_part(table, before)
        return self._since(table, before)

    # ---- the table whole

    def _from_beginning(self, table: DeltaLog) -> DeltaPlan:
        return self._whole(table, self._snapshot(table, table.latest))

    def _snapshot(self, table: DeltaLog, version: int) -> DeltaSnapshot:
        snapshot = snapshot_at(table, version, self._read_parquet)
        self._check_feed(snapshot.state)
        return snapshot

    def _whole(self, table: DeltaLog, snapshot: DeltaSnapshot) -> DeltaPlan:
        """Return a plan over all of a table, or over the first part that a bound takes."""
        position = position_of(table, snapshot)
        if self.recipe.options.bound.is_given:
            self._looks.snapshot = snapshot
            return self._part(snapshot, position, 0)
        files = snapshot.files
        pieces: tuple[Piece, ...] = (Whole(snapshot.version),) if files else ()
        return DeltaPlan(self.recipe, pieces, position, None, len(files), bytes_of(files), total_rows(files))

    def _next_part(self, table: DeltaLog, before: DeltaPosition) -> DeltaPlan:
        """Go on with a first read that takes several runs, of the same version."""
        snapshot = self._looks.snapshot
        if snapshot is None or (snapshot.version, snapshot.state) != (before.version, before.state):
            try:
                snapshot = self._looks.snapshot = self._snapshot(table, before.version)
            except VersionGoneError as error:
                if self.recipe.options.on_change != "reload":
                    raise self._gone(error, before) from error
                log.warning("%s: %s: the table is read anew.", self._label, error)
                return self._anew(table, before, None)
        plan = self._part(snapshot, before, before.files_read or 0)
        missing = self._missing(table, _files_of(plan))
        if missing and self.recipe.options.on_change == "reload":
            log.warning("%s: %d file(s) of a first read are gone: the table is read anew.", self._label, len(missing))
            return self._anew(table, before, None)
        if missing:
            raise self._no_longer_there(missing, before)
        return plan

    def _part(self, snapshot: DeltaSnapshot, position: DeltaPosition, start: int) -> DeltaPlan:
        files = part_of(snapshot.files, start, self.recipe.options)
        end = start + len(files)
        left = len(snapshot.files) - end
        return DeltaPlan(
            self.recipe,
            (Added(snapshot.version, snapshot.state, files, start),) if files else (),
            replace(position, files_read=end if left else None),
            None,
            len(files),
            bytes_of(files),
            total_rows(files),
            {OVER_BOUND: left} if left else {},
            has_more=bool(left),
        )

    # ---- what a start leaves out

    def _from_start(self, table: DeltaLog, found: PlanInput) -> DeltaPlan:
        start = self._start(table, found)
        if start is None:
            return self._from_beginning(table)
        plan = self._since(table, position_of(table, start))
        return replace(plan, skipped={**plan.skipped, **({BEFORE_START: len(start.files)} if start.files else {})})

    def _start(self, table: DeltaLog, found: PlanInput) -> DeltaSnapshot | None:
        """Return the table as it was where a first run begins; None: at the beginning.

        Raises:
            SourceError: the log does not go back to the time that is given.
        """
        time = found.start.time
        version = table.latest if time is None else table.last_before(time)
        if version is not None:
            return self._snapshot(table, version)
        if table.oldest > 0:
            raise SourceError(
                f"{self._label}: start={found.start.text!r}, and the log of the Delta table {self.recipe.name!r} "
                f"goes back to version {table.oldest}, which is later. Nothing was read or changed. Begin at "
                "'beginning', 'now' or at a later time."
            )
        return None

    # ---- what came since a version

    def _since(self, table: DeltaLog, before: DeltaPosition) -> DeltaPlan:
        try:
            commits = table.commits(before.version + 1, table.latest)
        except VersionGoneError as error:
            if self.recipe.options.on_change == "reload":
                log.warning("%s: %s: the table is read anew.", self._label, error)
                return self._anew(table, before, None)
            raise self._gone(error, before) from error
        window = window_of(commits, before.state.id, self.recipe.options)
        if window.change is not None and self.recipe.options.on_change == "error":
            raise changed(self.recipe.name, self._label, window.change, before.version)
        if window.change is not None and self.recipe.options.on_change == "reload":
            return self._anew(table, before, window)
        if window.change is not None:
            # Who only looks is told by the counts.
            log.log(
                logging.WARNING if self._ctx else logging.DEBUG,
                "%s: %s of the Delta table %r changed rows, which on_change='ignore' leaves out.",
                self._label,
                window.change.in_words(before.version),
                self.recipe.name,
            )
        if not window.commits:
            return DeltaPlan(self.recipe, (), before, before.version)
        missing = self._vacuumed(table, commits, window)
        if missing and self.recipe.options.on_change == "reload":
            log.warning("%s: %d appended file(s) are gone: the table is read anew.", self._label, len(missing))
            return self._anew(table, before, window)
        if missing:
            raise self._no_longer_there(missing, before)
        return self._windowed(before, window)

    def _windowed(self, before: DeltaPosition, window: CommitWindow) -> DeltaPlan:
        last, state = window.commits[-1], before.state.after(window.commits)
        state.check_log(self.recipe.name)
        files = window.files
        if self.recipe.options.changes:
            self._check_feed(state)
            self._check_recorded(before, window)
        piece = Feed(before.version + 1, last.version) if self.recipe.options.changes else Added(
            last.version, state, files
        )  # fmt: skip
        return DeltaPlan(
            self.recipe,
            (piece,) if files else (),
            DeltaPosition(last.version, last.fingerprint, state),
            before.version,
            len(files),
            bytes_of(files),
            None if self.recipe.options.changes else total_rows(files),
            {**window.skipped, **({OVER_BOUND: window.left} if window.left else {})},
            has_more=bool(window.left),
        )

    def _anew(self, table: DeltaLog, before: DeltaPosition, window: CommitWindow | None) -> DeltaPlan:
        snapshot = self._snapshot(table, table.latest)
        plan = self._whole(table, snapshot)
        new = set() if window is None else {file["path"] for file in window.files}
        again = 0 if plan.is_empty else sum(file["path"] not in new for file in snapshot.files)
        if window is not None and window.change is not None:
            log.warning(
                "%s: %s of the Delta table %r changed rows: the table is read anew.",
                self._label, window.change.in_words(before.version), self.recipe.name,
            )  # fmt: skip
        return replace(plan, after=before.version, read_again=min(again, plan.files), is_anew=True)

    def _vacuumed(self, table: DeltaLog, commits: Sequence[DeltaCommit], window: CommitWindow) -> list[str]:
        """Return the appended files of a window that are not there any more.

        A VACUUM removes only what a commit since, within the window or behind it, has compacted or deleted.
        """
        if self.recipe.options.changes:
            return []
        gone = {path for commit in commits for path in commit.gone}
        return self._missing(table, [file for file in window.files if file["path"] in gone])

    def _no_longer_there(self, missing: Sequence[str], before: DeltaPosition) -> VersionGoneError:
        return VersionGoneError(
            f"{self._label}: {len(missing)} file(s) of the Delta table {self.recipe.name!r} that are to be read, after "
            f"version {before.version}, are gone, the first: {missing[0]!r}. They were compacted or deleted since, and "
            "removed by a VACUUM. Nothing was read or changed. Reset the context, which then reads the table whole; or "
            "read with on_change='reload', which does so by itself. Let the job run more often than "
            "delta.deletedFileRetentionDuration, or raise that."
        )

    def _missing(self, table: DeltaLog, files: Iterable[Action]) -> list[str]:
        paths = [path_of(file, table.table) for file in files]
        own = [path for path, is_named in paths if not is_named]
        missing = [path for path, there in zip(own, table.files.stat(own), strict=True) if there is None]
        for path in (path for path, is_named in paths if is_named):  # of a shallow clone
            elsewhere = open_filesystem(path)
            missing += [path] if elsewhere.stat([elsewhere.canonical(path)])[0] is None else []
        return missing

    def _gone(self, error: VersionGoneError, before: DeltaPosition) -> VersionGoneError:
        return VersionGoneError(
            f"{self._label}: {error}; the position is version {before.version}. Nothing was read or changed. Reset the "
            "context, which then reads the table whole; or read with on_change='reload', which does so by itself. Let "
            "the job run more often than delta.logRetentionDuration, or raise that."
        )

    def _check_feed(self, state: TableState) -> None:
        if not self.recipe.options.changes or state.has_feed:
            return
        name = self.recipe.name if self.recipe.name != self.recipe.path else f"delta.`{self.recipe.path}`"
        raise OptionError(
            f"{self._label}: changes=True, and the Delta table {self.recipe.name!r} has no change feed. Nothing was "
            f"read or changed. Turn it on: ALTER TABLE {name} SET TBLPROPERTIES (delta.enableChangeDataFeed = true); "
            "what was changed before that is not in it."
        )

    def _check_recorded(self, before: DeltaPosition, window: CommitWindow) -> None:
        """Make sure that the change feed was on at each commit of a window that has anything to read.

        Raises:
            SourceError: it was off at one.
        """
        state = before.state
        for commit in window.commits:
            state = state.after([commit])
            if commit.has_news and not state.has_feed:
                raise SourceError(
                    f"{self._label}: the change feed of the Delta table {self.recipe.name!r} was off at "
                    f"{commit.in_words(before.version)}, so what changed there is not recorded. Nothing was read or "
                    f"changed. Set the context to {commit.version}, which counts this version as read; or reset it, "
                    "and the next run reads the table whole."
                )

    # ---- whether it is the same table

    def _is_same(self, table: DeltaLog, before: DeltaPosition) -> bool:
        """Whether a table is that of a position; False where it is another one, and the script says "reset".

        Raises:
            SourceSwitchedError: it is another one.
        """
        if not table.has(before.version):
            if before.version + 1 < table.oldest:
                return True  # its log was cleaned, and what it lacks is found next
            if before.version + 1 == table.oldest and self._goes_on(table, before):
                return True
        elif table.fingerprint(before.version) == before.fingerprint:
            return True
        if self._on_source_change == "reset":
            return False
        now = snapshot_at(table, table.latest, self._read_parquet).state.id
        what = f"table {now}" if now != before.state.id else f"table {now} with another history"
        raise SourceSwitchedError(
            self._job,
            self._ctx,
            f"{self.ref()} (table {before.state.id} at version {before.version})",
            f"{self.ref()} ({what} at version {table.latest})",
            keeps_elsewhere=False,
        )

    def _goes_on(self, table: DeltaLog, before: DeltaPosition) -> bool:
        """Whether the commits from behind a position on, whose own is gone, lead to the table that is there."""
        commits = table.commits(before.version + 1, table.latest)
        return before.state.after(commits).id == snapshot_at(table, table.latest, self._read_parquet).state.id

    # ---- after it

    def advance(self, plan: DeltaPlan) -> Position | None:
        """Return the position behind a plan; see `Source.advance`."""
        return plan.position_from(self._found)

    def recheck(self, plan: DeltaPlan) -> Recheck:
        """Look whether the versions and files of a plan are still there; see `Source.recheck`."""
        if plan.leads_to is None or plan.is_empty:
            return Recheck()
        table = DeltaLog.open(self.recipe.path)
        end = plan.leads_to
        if table.has(end.version) and table.fingerprint(end.version) != end.fingerprint:
            return Recheck(moved=f"the Delta table {self.recipe.name!r} was replaced by another one")
        gone = next((why for piece in plan.pieces if (why := self._why_gone(table, piece)) is not None), None)
        if gone is not None:
            return Recheck(missing=(gone,), moved=gone)  # a pause over runs looks at what is missing alone
        return Recheck(tuple(self._missing(table, _files_of(plan))))

    def _why_gone(self, table: DeltaLog, piece: Piece) -> str | None:
        if isinstance(piece, Whole):
            is_gone, what = not table.can_rebuild(piece.version), f"version {piece.version}"
        elif isinstance(piece, Feed):
            is_gone, what = not table.has_all(piece.first, piece.last), f"versions {piece.first} to {piece.last}"
        else:
            return None
        return f"{what} of the Delta table {self.recipe.name!r} went from its log" if is_gone else None

    # ---- see `BoundedSource`

    @property
    def bounds(self) -> frozenset[str]:
        """Files and bytes."""
        return frozenset({"max_files", "max_bytes"})

    def bounded(self, bound: Bound) -> DeltaSource:
        """Return the same source that plans no more than `bound`."""
        recipe = replace(self.recipe, options=self.recipe.options.bounded(bound))
        return DeltaSource(
            recipe, self._label, self._read_parquet, self._on_source_change, self._job, self._ctx, self._looks
        )


def position_of(table: DeltaLog, snapshot: DeltaSnapshot) -> DeltaPosition:
    """Return the position of a table that was read as of a version."""
    return DeltaPosition(snapshot.version, table.fingerprint(snapshot.version), snapshot.state)


def _files_of(plan: DeltaPlan) -> list[Action]:
    """Return the files that a plan names."""
    return [file for piece in plan.pieces if isinstance(piece, Added) for file in piece.files]
