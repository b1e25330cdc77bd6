"""The options of one read beyond those of Spark's own reader, and what the runs of a loop share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.rules.schema import InferSchema
from airflow_bookmarks.core.rules.shard import ShardBy, check_shard_by
from airflow_bookmarks.lifecycle.state.quarantine import OnCorrupt
from airflow_bookmarks.lifecycle.state.verification import OnMissing
from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.source import OnSourceChange
from airflow_bookmarks.sources.upstream.rewind import OnRewind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_bookmarks.core.rules.shard import VirtualShard
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
    from airflow_bookmarks.sources.files.options import FileOptions
    from airflow_bookmarks.sources.files.scan import Looks
    from airflow_bookmarks.spark.readers.files import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The keywords of `BookmarkedJob.read`, which says what each of them does; `files` are those of the source itself.

    Raises:
        OptionError: a choice that is none; to start over at other columns, and to read but a part.
    """

    files: FileOptions
    disposal: Disposal
    on_missing: OnMissing
    on_upstream_rewind: OnRewind
    on_source_change: OnSourceChange
    moved_from: str | None
    on_corrupt: OnCorrupt
    watermark_column: str | None
    shard_by: ShardBy
    infer_schema: InferSchema
    count_rows: bool
    read_by: Way | None

    def __post_init__(self) -> None:
        check_choice("infer_schema", self.infer_schema, InferSchema)
        check_shard_by(self.shard_by)
        check_choice("on_corrupt", self.on_corrupt, OnCorrupt)
        check_choice("on_missing", self.on_missing, OnMissing)
        check_choice("on_upstream_rewind", self.on_upstream_rewind, OnRewind)
        check_choice("on_source_change", self.on_source_change, OnSourceChange)
        if self.moved_from is not None and self.on_source_change != "error":
            raise OptionError(
                f"moved_from={self.moved_from!r} and on_source_change={self.on_source_change!r} both say what becomes "
                "of a position of another source. Nothing was read or changed. Give one of them."
            )
        self._check_ends()

    @property
    def observed(self) -> list[str]:
        """The options, as given, that need to know what an action of the script has read."""
        given = {
            "count_rows=True": self.count_rows,
            f"watermark_column={self.watermark_column!r}": self.watermark_column is not None,
            f"on_published={self.disposal.on_published!r}": not self.disposal.is_kept,
        }
        return [option for option, is_given in given.items() if is_given]

    def _check_ends(self) -> None:
        """Refuse to start over in parts: after a part with the old columns the new ones would start it over again."""
        if self.files.on_schema_change != "reset" or not self.files.bound.is_given:
            return
        given = ", ".join(name.removesuffix("_ms") for name in self.files.bound.facts())
        raise OptionError(
            f"on_schema_change='reset' with a bound ({given}, of the read or of its loop): each run reads a part, so "
            "old files and new ones would start it over by turns, without end. Nothing was read or changed. Read with "
            "on_schema_change='fail'; where that stops, reset the job by hand (airflow-bookmarks reset) and drain it "
            "with the new columns in .schema(...), or with 'accept'. Or read without a bound."
        )


@dataclass(frozen=True, slots=True)
class ReadShare:
    """What one run of a loop reads of a context: a virtual shard, a batch, or all of it.

    `looks` and `backlog` are what it shares with the other runs of its loop.
    """

    shard: VirtualShard | None
    looks: Looks | None
    backlog: Backlog | None
    clock: Callable[[], datetime]


class Batches:
    """What the runs of one loop share: its bound, and what is left of each context since the first batch listed it."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._backlogs: dict[str, Backlog] = {}

    def bounded(self, options: FileOptions) -> FileOptions:
        """Return the options of a context with its own bound, if it gives any, else with that of the loop."""
        return options if options.bound.is_given else replace(options, bound=self._bound)

    def backlog(self, ctx: str) -> Backlog:
        """Return what the batches share of a context."""
        return self._backlogs.setdefault(ctx, Backlog())
