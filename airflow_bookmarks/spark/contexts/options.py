"""The options of a read beyond those of Spark's own reader: of every kind, of files, of an upstream; and of a loop."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.rules.schema import InferSchema, OnSchemaChange
from airflow_bookmarks.core.rules.shard import ShardBy, TableShard, VirtualShard, check_shard_by
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.lifecycle.state.quarantine import OnCorrupt
from airflow_bookmarks.lifecycle.state.verification import OnMissing
from airflow_bookmarks.sources.delta.looks import DeltaLooks
from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.source import OnSourceChange
from airflow_bookmarks.sources.upstream.rewind import OnRewind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.lifecycle.history.shards import Layout
    from airflow_bookmarks.sources.files.scan import SharedScans
    from airflow_bookmarks.sources.jdbc.settling import SharedSettlings
    from airflow_bookmarks.sources.part_loop import PartLoop
    from airflow_bookmarks.spark.readers.files import Way

# Options of a selection of files that a script gives elsewhere, or in other words.
_ELSEWHERE = ("bound", "empties", "on_schema_change")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The keywords of `BookmarkedJob.read`, which belong to no one kind of source; the method says what each does.

    Raises:
        OptionError: a choice that is none.
    """

    on_source_change: OnSourceChange = "error"
    on_schema_change: OnSchemaChange = "fail"
    watermark_column: str | None = None
    count_rows: bool = False
    deleted_when: str | None = None

    def __post_init__(self) -> None:
        check_choice("on_source_change", self.on_source_change, OnSourceChange)
        check_choice("on_schema_change", self.on_schema_change, OnSchemaChange)
        check_text("watermark_column", self.watermark_column)
        check_text("deleted_when", self.deleted_when)
        if not isinstance(self.count_rows, bool):
            raise OptionError(f"count_rows={self.count_rows!r}: expected True or False. Nothing was read or changed.")

    @property
    def observed(self) -> list[str]:
        """The options, as given, that need to know what an action of the script has read."""
        given = {
            "count_rows=True": self.count_rows,
            f"watermark_column={self.watermark_column!r}": self.watermark_column is not None,
        }
        return [option for option, is_given in given.items() if is_given]

    def check_ends(self, bound: Bound) -> None:
        """Refuse to start over in parts: after a part with the old columns the new ones would start it over again.

        Raises:
            OptionError: `on_schema_change="reset"` with a bound.
        """
        if self.on_schema_change != "reset" or not bound.is_given:
            return
        raise OptionError(
            f"on_schema_change='reset' with a bound ({', '.join(bound.given())}, of the read or of its loop): each run "
            "reads a part, so old files and new ones would start it over by turns, without end. Nothing was read or "
            "changed. Read with on_schema_change='fail'; where that stops, reset the job by hand (airflow-bookmarks "
            "reset) and drain it with the new columns in .schema(...), or with 'accept'. Or read without a bound."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReadOptions:
    """The keywords of `BookmarkedReader.files`, which says what each of them does; `selection` says which files.

    Raises:
        OptionError: a choice that is none.
    """

    selection: FileOptions = field(default_factory=FileOptions)
    disposal: Disposal = field(default_factory=Disposal)
    on_missing: OnMissing = "error"
    moved_from: str | None = None
    on_corrupt: OnCorrupt = "error"
    shard_by: ShardBy = "path"
    per_partition: bool = False
    infer_schema: InferSchema = "sample"
    read_by: Way | None = None
    listed_partitions: ListedPartitions | None = None

    def __post_init__(self) -> None:
        check_choice("infer_schema", self.infer_schema, InferSchema)
        check_shard_by(self.shard_by)
        check_choice("on_corrupt", self.on_corrupt, OnCorrupt)
        check_choice("on_missing", self.on_missing, OnMissing)
        check_text("moved_from", self.moved_from)
        if not isinstance(self.per_partition, bool):
            raise OptionError(f"per_partition={self.per_partition!r}: expected True or False. Nothing was read.")

    def given(self) -> list[str]:
        """Return the names of the options that are not the default."""
        others = [each.name for each in fields(self) if each.name not in ("selection", "disposal")]
        default = FileReadOptions()
        changed = [name for name in others if getattr(self, name) != getattr(default, name)]
        selected = [name for name in self.selection.given() if name not in _ELSEWHERE]
        cleanup = [] if self.disposal.is_kept else ["on_published"]
        return [*selected, *self.selection.bound.given(), *cleanup, *changed]

    def check_source_change(self, on_change: OnSourceChange) -> None:
        """Make sure that one option alone says what becomes of a position of another source.

        Raises:
            OptionError: `moved_from` and `on_source_change` both do.
        """
        if self.moved_from is not None and on_change != "error":
            raise OptionError(
                f"moved_from={self.moved_from!r} and on_source_change={on_change!r} both say what becomes of a "
                "position of another source. Nothing was read or changed. Give one of them."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamReadOptions:
    """The keywords of `BookmarkedReader.upstream`, which says what each of them does.

    Raises:
        OptionError: a choice that is none.
    """

    output: str | None = None
    until: Any = None
    on_rewind: OnRewind = "fail"
    bound: Bound = UNBOUND

    def __post_init__(self) -> None:
        check_choice("on_rewind", self.on_rewind, OnRewind)
        check_text("output", self.output)


def check_text(name: str, value: object) -> None:
    """Make sure that an option is text, or None.

    Raises:
        OptionError: it is something else, or empty.
    """
    if value is not None and not (isinstance(value, str) and value):
        raise OptionError(f"{name}={value!r}: expected text, or None. Nothing was read or changed.")


@dataclass(frozen=True, slots=True)
class ReadShare:
    """What one run of a loop reads of a context: a virtual shard, a batch, or all of it.

    `scans`, `settlings`, `backlog` and `delta` are what it shares with the other runs of its loop, `bound` is that of
    the loop; `loop` reads the values of a column one by one.
    """

    number: int | None
    layout: Layout | None
    scans: SharedScans | None
    backlog: Backlog | None
    bound: Bound
    clock: Callable[[], datetime]
    settlings: SharedSettlings | None = None
    loop: PartLoop | None = None
    delta: DeltaLooks | None = None

    @property
    def is_shard(self) -> bool:
        """Whether this is a virtual shard of a sharded job."""
        return self.number is not None

    def shard(self, ctx: str, by: ShardBy) -> VirtualShard | None:
        """Return the virtual shard to read of a context; None for a job without shards.

        Raises:
            OptionError: other shards share this context out by something else.
        """
        if self.layout is not None:
            self.layout.check_rule(ctx, by)
        return None if self.number is None else VirtualShard(self.number, by)

    def table_shard(self, ctx: str, column: str | None) -> TableShard | None:
        """Return the virtual shard of a table to read; None for a job without shards.

        Raises:
            OptionError: other shards share this context out by something else.
        """
        shard = None if self.number is None else TableShard(self.number, column)
        if self.layout is not None and shard is not None:
            self.layout.check_rule(ctx, shard.by)
        return shard

    def bounded(self, given: Bound) -> Bound:
        """Return the bound of a read: its own if it has any, else that of the loop."""
        return given if given.is_given else self.bound


class Batches:
    """What the runs of one loop share: its bound, and what is left of each context since the first batch listed it."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self._backlogs: dict[str, Backlog] = {}
        self._deltas: dict[str, DeltaLooks] = {}

    def backlog(self, ctx: str) -> Backlog:
        """Return what the batches share of a context."""
        return self._backlogs.setdefault(ctx, Backlog())

    def delta(self, ctx: str) -> DeltaLooks:
        """Return what the batches have read of the log of a table."""
        return self._deltas.setdefault(ctx, DeltaLooks())
