"""The files of a Delta table as of one version: a checkpoint, and the commits since; or all commits from the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.sources.delta.checkpoint import checkpoint_actions
from airflow_bookmarks.sources.delta.commit import actions_of, key_of, lean
from airflow_bookmarks.sources.tables.versioned import VersionGoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.sources.delta.checkpoint import ReadParquet
    from airflow_bookmarks.sources.delta.commit import Action, DeltaCommit
    from airflow_bookmarks.sources.delta.log import DeltaLog

# With these, commits are kept by a catalog, and a log lacks the newest of them.
_OF_CATALOGUES = ("catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview")


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table is, beside its files: `metadata` and `protocol` as its log has them."""

    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The id that the table got when it was made, or replaced."""
        return str(self.metadata["id"])

    def setting(self, name: str) -> str | None:
        """Return a property of the table."""
        found = (self.metadata.get("configuration") or {}).get(name)
        return None if found is None else str(found)

    @property
    def has_feed(self) -> bool:
        """Whether it records a change feed."""
        return (self.setting("delta.enableChangeDataFeed") or "").lower() == "true"

    def after(self, commits: Iterable[DeltaCommit]) -> TableState:
        """Return what it is after some commits."""
        metadata, protocol = self.metadata, self.protocol
        for commit in commits:
            metadata, protocol = commit.metadata or metadata, commit.protocol or protocol
        return TableState(metadata, protocol)

    def check_log(self, table: str) -> None:
        """Make sure that the log has all commits of the table.

        Raises:
            SourceError: a catalog keeps the newest ones.
        """
        features = {*(self.protocol.get("readerFeatures") or ()), *(self.protocol.get("writerFeatures") or ())}
        kept = sorted(features.intersection(_OF_CATALOGUES))
        if kept:
            raise SourceError(
                f"the commits of the Delta table {table!r} are kept by a catalog ({', '.join(kept)}), so its log "
                "does not tell what is new. Nothing was read or changed. Read it whole with spark.read, or drop the "
                "feature from the table."
            )


@dataclass(frozen=True, slots=True)
class DeltaSnapshot:
    """A table as of a version: its files in the order of their time."""

    version: int
    state: TableState
    files: tuple[Action, ...]


def snapshot_at(log: DeltaLog, version: int, read: ReadParquet | None) -> DeltaSnapshot:
    """Return a table as of a version.

    Args:
        read: reads checkpoints; None: nothing here does, so the log has to go back to version 0.

    Raises:
        VersionGoneError: the log does not tell any more. OptionError: a checkpoint can't be read here.
        SourceError: it can't be read.
    """
    checkpoint, first, replay = log.checkpoint(version), 0, _Replay()
    if checkpoint is not None and read is not None:
        replay.take(checkpoint_actions(log.files, checkpoint.paths, read))
        first = checkpoint.version + 1
    elif not log.has_all(0, version):
        raise _no_beginning(log, version) if checkpoint is None else _unreadable(checkpoint.paths[0])
    for body in log.bodies(first, version):
        replay.take(actions_of(body))
    if replay.metadata is None or replay.protocol is None:
        raise SourceError(
            f"the Delta table {log.table!r} has no metadata in its log up to version {version}. Nothing was read or "
            "changed. Does Spark read it?"
        )
    state = TableState(replay.metadata, replay.protocol)
    state.check_log(log.table)
    in_order = sorted(replay.files.values(), key=lambda file: (file["modificationTime"], *map(str, key_of(file))))
    return DeltaSnapshot(version, state, tuple(in_order))


def _no_beginning(log: DeltaLog, version: int) -> VersionGoneError:
    return VersionGoneError(
        f"the Delta table {log.table!r} can't be read as of version {version} any more: its log goes back to version "
        f"{log.oldest}, without a checkpoint before it"
    )


def _unreadable(path: str) -> OptionError:
    return OptionError(
        f"the checkpoint {path} of a Delta table is Parquet, and pyarrow, which reads it, is not installed here. "
        "Nothing was read or changed. Install airflow-provider-bookmarks[delta]."
    )


class _Replay:
    """What is true after some actions."""

    def __init__(self) -> None:
        self.metadata: Action | None = None
        self.protocol: Action | None = None
        self.files: dict[tuple[str, str | None], Action] = {}

    def take(self, actions: Iterable[Action]) -> None:
        """Take the actions of one commit, or of a checkpoint."""
        added = []
        for action in actions:
            if "metaData" in action:
                self.metadata = action["metaData"]
            elif "protocol" in action:
                self.protocol = action["protocol"]
            elif "add" in action:
                added.append(lean(action["add"]))
            elif "remove" in action:
                self.files.pop(key_of(action["remove"]), None)
        self.files |= {key_of(file): file for file in added}
