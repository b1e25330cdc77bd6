"""Tables that are read whole: a plan takes a snapshot, and reads what differs from the last one.

    new folder -> snapshot of all rows -> compare with the last one -> plan: the two snapshots, and how many changes

Both lie in the artifacts of the job, and a frame reads nothing else. So all actions, a retry within the run, a replay
and a pause over runs read the same, whatever becomes of the table. The commit makes the new snapshot the last one.
"""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from airflow_bookmarks.core.errors import OptionError, SourceError, StoreAccessError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.rules.schema import is_wider, spoken
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.reason import BEFORE_START
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.sources.jdbc.catalog import server_identity
from airflow_bookmarks.sources.jdbc.settling import now
from airflow_bookmarks.sources.snapshot.position import SnapshotPlan, SnapshotPosition
from airflow_bookmarks.sources.snapshot.snapshot import ChangeCounts, TableSnapshot, missing, opened
from airflow_bookmarks.sources.source import Recheck

if TYPE_CHECKING:
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.rules.schema import Type
    from airflow_bookmarks.sources.jdbc.queries import Connect
    from airflow_bookmarks.sources.jdbc.recipe import Relation
    from airflow_bookmarks.sources.snapshot.snapshot import Open, SnapshotMaker
    from airflow_bookmarks.sources.source import PlanInput

log = logging.getLogger(__name__)

_ON_ANOTHER_SERVER = "Whatever differs there would count as changed. Reset the context to read it anew."

KIND = "jdbc-snapshot"
OnEmptied = Literal["error", "accept"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A relation of a database that is compared whole. `address` names the database, and tells no secret.

    Args:
        keys: the columns by which a row is the same one; none: all of them.
        on_emptied: what to do if a table that had rows has none.

    Raises:
        OptionError: a choice that is none, or a key is named twice.
    """

    address: str
    dialect: str
    relation: Relation
    keys: tuple[str, ...] = ()
    on_emptied: OnEmptied = "error"

    def __post_init__(self) -> None:
        check_choice("on_emptied", self.on_emptied, OnEmptied)
        if len(set(self.keys)) < len(self.keys):
            raise OptionError(f"keys={list(self.keys)}: a key is named twice. Nothing was read or changed.")


class SnapshotSource:
    """What has changed in one table or query.

    Args:
        connect: opens a session of its database.
        snapshots: takes and compares snapshots.
        open_files: opens the file system that a folder lies on.
        label: what messages begin with.
    """

    kind = KIND
    format: str | None = None

    def __init__(
        self, table: ComparedTable, connect: Connect, snapshots: SnapshotMaker, open_files: Open, label: str
    ) -> None:
        self._table, self._connect, self._snapshots = table, connect, snapshots
        self._open, self._label = open_files, label
        self._found: bytes | None = None
        self._taken: SnapshotPosition | None = None  # by this source: one that starts over reads the table once

    def ref(self) -> SourceRef:
        """Return database and table; see `Source.ref`."""
        return SourceRef(self.kind, f"{self._table.address} {self._table.relation.name}")

    def plan(self, found: PlanInput) -> SnapshotPlan:
        """Take a snapshot, and fix what differs from the last one; see `Source.plan`.

        Raises:
            OptionError: the store has no `state_uri`; a start or a column that can't be compared.
            SourceError: the table is not what it was, or it has no rows any more.
        """
        self._found = found.position
        before = None if found.position is None else SnapshotPosition.decode(found.position)
        if found.position is None and found.start.time is not None:
            raise OptionError(
                f"{self._label}: start={found.start.text!r} of a table that is compared whole, whose rows have no time "
                "here. Nothing was read or changed. Begin at 'beginning' or 'now'."
            )
        if before is not None:
            self._check_comparable(before)
        with ExitStack() as undo:
            taken = self._taken or self._take(found, undo, before)
            plan = self._compared(before, taken, is_start=before is None and found.start.is_now)
            if plan.after == taken.snapshot:
                self._taken = taken
                undo.pop_all()
        return plan

    def _take(self, found: PlanInput, undo: ExitStack, before: SnapshotPosition | None) -> SnapshotPosition:
        """Copy the table to a new folder, which goes again unless the plan comes to name it."""
        uri = found.new_artifact()
        dialect = dialect_named(self._table.dialect)
        with ExitStack() as session:
            queries = session.enter_context(self._connect())
            known = None if before is None else before.identity
            identity = server_identity(self._label, queries, dialect, self._table.address, known, _ON_ANOTHER_SERVER)
            moment = to_text(now(queries, dialect))
            undo.callback(self._drop, found, uri)
            shared = self._snapshots.shares
            opening = None if shared is None else opened(queries, shared)
            if opening is None:
                session.close()  # a server may end a session that is idle as long as a table is read
            # Else it stays open: a shared snapshot lasts as long as the transaction that has made it.
            taken = self._snapshots.take(uri, opening)
        return SnapshotPosition(self._table.keys, replace(taken, taken_at=moment), identity)

    def _drop(self, found: PlanInput, uri: str) -> None:
        try:
            found.drop_artifact(uri)
        except StoreAccessError as error:
            log.info("%s: %s A collection removes it.", self._label, error)

    def _compared(self, before: SnapshotPosition | None, taken: SnapshotPosition, *, is_start: bool) -> SnapshotPlan:
        after = taken.snapshot
        if is_start:
            return SnapshotPlan(after, taken, ChangeCounts(), {BEFORE_START: after.rows} if after.rows else {})
        if before is None:
            return SnapshotPlan(None, taken, ChangeCounts(inserted=after.rows))
        self._check_keys_kept(before.snapshot, after)
        if before.snapshot.rows and not after.rows:
            self._check_emptied(before.snapshot)
        counts = self._snapshots.compare(before.snapshot, after)
        if not counts.total and before.snapshot.columns == after.columns:
            return SnapshotPlan(before.snapshot, before, counts)
        return SnapshotPlan(before.snapshot, taken, counts)

    def advance(self, plan: SnapshotPlan) -> Position | None:
        """Return the position at the new snapshot; see `Source.advance`."""
        return plan.position_from(self._found)

    def recheck(self, plan: SnapshotPlan) -> Recheck:
        """Find the files of the snapshots that are gone or cut short; the table itself may change; see `Source`."""
        return Recheck(tuple(path for each in plan.snapshots for path in missing(self._open, each)))

    # ---- where the table has to be what it was

    def _check_comparable(self, before: SnapshotPosition) -> None:
        if before.keys != self._table.keys:
            said = [", ".join(keys) or "all columns" for keys in (before.keys, self._table.keys)]
            raise SourceError(
                f"{self._label}: the bookmark compares rows by {said[0]}, and the keys are {said[1]} now. Nothing was "
                "read or changed. Give the keys of before; or reset the context, and read the table anew."
            )
        gone = missing(self._open, before.snapshot)
        if gone:
            raise SourceError(
                f"{self._label}: {len(gone)} file(s) of the last snapshot are gone or cut short, the first: "
                f"{gone[0]!r}. Nothing was read or changed. Put them back from a backup; or reset the context, and "
                "read the table anew."
            )

    def _check_keys_kept(self, before: TableSnapshot, after: TableSnapshot) -> None:
        """Make sure that keys of both snapshots can be compared: a value of another type is another value."""
        then, present = _types(before), _types(after)
        for key in self._table.keys:
            old, new = then.get(key), present[key]
            if old != new and (old is None or not is_wider(new, old)):
                raise SourceError(
                    f"{self._label}: key {key!r} was {'not there' if old is None else spoken(old)} in the last "
                    f"snapshot, and is {spoken(new)} now. Nothing was committed. Reset the context, and read the table "
                    "anew."
                )

    def _check_emptied(self, before: TableSnapshot) -> None:
        if self._table.on_emptied == "accept":
            log.warning("%s: the table has no rows any more: all %s count as deleted.", self._label, f"{before.rows:,}")
            return
        raise SourceError(
            f"{self._label}: the table has no rows any more, so all {before.rows:,} would count as deleted. Nothing "
            "was committed. If it is being loaded, run again later; if this is right, give on_emptied='accept'."
        )


def _types(snapshot: TableSnapshot) -> dict[str, Type]:
    return {each["name"]: each["type"] for each in json.loads(snapshot.columns)["fields"]}
