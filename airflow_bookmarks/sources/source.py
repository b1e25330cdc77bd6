"""The interface of a source to the lifecycle: it plans what is new, and says where that leaves the context."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.metadata.file_plan import FilePlanMetadata
from airflow_bookmarks.core.rules.start import BEGINNING, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import SourceRef
    from airflow_bookmarks.core.selection.bound import Bound


P = TypeVar("P", bound="Plan")


@dataclass(frozen=True, slots=True)
class Relocation:
    """A position after the move from the root `old` to `new`: files that count as read do, under their new paths.

    `counts` says how many files are the `same`, `changed`, `new`, or can't be compared (`unverified`, which
    `counted_as` decides).
    """

    position: Position
    old: str
    new: str
    counts: Mapping[str, int]
    counted_as: str | None

    @property
    def stats(self) -> Mapping[str, Any]:
        """It as plain values, for the record of a change or a run."""
        return {"from": self.old, "to": self.new, **self.counts, "counted_as": self.counted_as}


def _no_place() -> str:
    raise OptionError(
        "this plan may keep no files beside its position: nothing is stored of it, or there is no store. Nothing was "
        "read or changed."
    )


def _drop_nothing(uri: str) -> None:
    """Leave a folder where it is: there is none that a plan without a place has made."""


@dataclass(frozen=True, slots=True)
class PlanInput:
    """What a source is planned from: the stored position of its context (None: none yet), and what belongs to it.

    `load` fetches segments of a ledger by content hash; `partition_types` are those settled in earlier runs.
    `start` says where to begin without a position: what lies before counts as read. `watermark` is that of the
    position, `stats` what the run that moved it last recorded with its plan, and `read_at` when by its clock that
    run began. A source of files goes by `file_metadata`, which is typed; a kind of your own reads from `stats` what its
    own plans have recorded. `moved` says that it is the position after a move of its files, which the run that
    commits stores. `is_set` tells that the position is none that a run has left: what counts as read is more, or less,
    than the stats tell. `new_artifact` returns the URI of a new folder below the store's `state_uri`, for what has to
    be kept with the position that the plan leads to (`Position.artifacts`). `drop_artifact` removes one of these at
    once, where the plan turns out not to need it.
    """

    position: bytes | None = None
    load: Load = lambda names: {}
    partition_types: Mapping[str, str] = field(default_factory=dict)
    start: Start = BEGINNING
    watermark: str | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    read_at: datetime | None = None
    moved: Relocation | None = None
    is_set: bool = False
    new_artifact: Callable[[], str] = _no_place
    drop_artifact: Callable[[str], None] = _drop_nothing

    @property
    def file_metadata(self) -> FilePlanMetadata:
        """What a plan of files has settled and left for the next one."""
        metadata = FilePlanMetadata.of_stats(self.stats)
        # A set may lead back: what lies between was not read, so no folder of it is old.
        return replace(metadata, newest_partition=None) if self.is_set else metadata


@dataclass(frozen=True, slots=True)
class Recheck:
    """The result of a second check of planned input: files that changed or went since planning.

    `moved` describes what else is not as it was planned: a run of an upstream job that was replayed meanwhile.
    """

    missing: tuple[str, ...] = ()
    moved: str | None = None


OnSourceChange = Literal["error", "reset", "keep"]


class Source(Protocol[P]):
    """What is new in one place, as plans of type `P`: each kind has its own.

    `plan` fixes a window; `advance` says where it leads. Neither needs Spark.
    """

    @property
    def kind(self) -> str:
        """The name of its kind."""
        ...

    @property
    def format(self) -> str | None:
        """What its files are read as; None where the script does not say, or what it reads is no files."""
        ...

    def ref(self) -> SourceRef:
        """Return what tells this source from another under the same context: kind and name, readable, no secret.

        Its text is stored with the context, and with each plan.
        """
        ...

    def plan(self, found: PlanInput) -> P:
        """Fix what a run will read.

        Raises:
            SourceError: it can't be planned; nothing was changed.
        """
        ...

    def advance(self, plan: P) -> Position | None:
        """Return the position after `plan` (of the last `plan` call, or less of it); None if it does not move."""
        ...

    def recheck(self, plan: P) -> Recheck:
        """Look at the planned input again, before the commit."""
        ...


@runtime_checkable
class BoundedSource(Source[P], Protocol[P]):
    """A source that can leave a part of what is new to the next run, as `job.batches` asks for.

    Its plans then say so (`has_more`), and count what they leave out as "over_bound" among `skipped`. The loop goes on
    while a plan has more, so one over a place to which more is added faster than it is read does not end.
    """

    @property
    def bounds(self) -> frozenset[str]:
        """The names of the bounds that it takes: "max_rows", "max_bytes", "max_files", "window"."""
        ...

    def bounded(self, bound: Bound) -> Source[P]:
        """Return a source that plans no more than `bound` at a time, but something if anything is new.

        It has the kind and the `ref` of this one, whose position it moves; another one is refused.
        """
        ...
