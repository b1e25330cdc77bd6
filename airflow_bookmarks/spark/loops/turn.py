"""A turn of a loop: which of its runs a job is, and what it shares with the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.bound import UNBOUND
from airflow_bookmarks.sources.delta.looks import DeltaLooks
from airflow_bookmarks.sources.files.scan import SharedScans
from airflow_bookmarks.sources.jdbc.settling import SharedSettlings
from airflow_bookmarks.spark.contexts.options import Batches, ReadShare

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_bookmarks.lifecycle.history.shards import Layout
    from airflow_bookmarks.lifecycle.run.session import RunSession
    from airflow_bookmarks.sources.part_loop import PartLoop


@dataclass(frozen=True, slots=True)
class Looks:
    """What the runs of a loop look at once for all of them: folders, those who write into a table, logs of tables."""

    scans: SharedScans = field(default_factory=SharedScans)
    settlings: SharedSettlings = field(default_factory=SharedSettlings)
    deltas: dict[str, DeltaLooks] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Which run of which loops a job is; the turn of a job outside of any loop has nothing.

    Attributes:
        shard: The number of the virtual shard, 0 to 63, in the loop of `shards()`.
        layout: How the shards of the job share its contexts out.
        looks: What the runs of the loop look at once.
        batches: What the batches of the loop share.
        parts: What the partitions of the loop share.
        previous: The run before this one, which hands the job over to it; None: the job is taken anew.
    """

    shard: int | None = None
    layout: Layout | None = None
    looks: Looks | None = None
    batches: Batches | None = None
    parts: PartLoop | None = None
    previous: RunSession | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the execution may go on with another run of the same job after this one."""
        return self.batches is not None or self.parts is not None

    def share(self, job: str, ctx: str, clock: Callable[[], datetime]) -> ReadShare:
        """Return what this run reads of a context.

        Raises:
            OptionError: the loop is over the partitions of another context.
        """
        if self.parts is not None and ctx != self.parts.ctx:
            raise OptionError(
                f"job {job!r}, context {ctx!r}: this loop is over the partitions of {self.parts.ctx!r}, and the first "
                f"of its runs alone would read anything of {ctx!r}. Nothing was read or changed. Read lookups with "
                "job.reference(name)."
            )
        return ReadShare(
            number=self.shard,
            layout=self.layout,
            scans=None if self.looks is None else self.looks.scans,
            settlings=None if self.looks is None else self.looks.settlings,
            loop=self.parts,
            backlog=None if self.batches is None else self.batches.backlog(ctx),
            delta=self._delta(ctx),
            bound=UNBOUND if self.batches is None else self.batches.bound,
            clock=clock,
        )

    def _delta(self, ctx: str) -> DeltaLooks | None:
        if self.batches is not None:
            return self.batches.delta(ctx)
        if self.parts is None or self.looks is None:
            return None
        return self.looks.deltas.setdefault(ctx, DeltaLooks())

    def check_overwrite(self, job: str, target: str) -> None:
        """Make sure that an output that replaces its target replaces nothing that other runs of the loop wrote.

        Raises:
            OptionError: it might.
        """
        if self.shard is not None:
            raise OptionError(
                f"job {job!r}: mode 'overwrite' of {target!r} by a shard would delete what the others wrote. "
                "Nothing was written or committed. Append."
            )
        if self.goes_on:
            one, more = ("batch", "batches") if self.parts is None else ("partition", "partitions")
            raise OptionError(
                f"job {job!r}: mode 'overwrite' of {target!r} by a {one} would delete what the {more} before it "
                "wrote. Nothing was written or committed. Append, or read all in one run."
            )


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run of a loop ended: `run` is None where it never began, `is_done` says whether it has committed."""

    run: RunSession | None
    is_done: bool
    is_aborted: bool


class Loop(Protocol):
    """The order of a loop whose runs follow each other under one execution of a job."""

    def first(self, turn: Turn) -> Turn:
        """Return the first turn of the loop, within the turn of the job that it is a loop of."""

    def after(self, job: str, turn: Turn, ending: Ending) -> Turn | None:
        """Return the turn after one that ended like this; None: the loop is over.

        Raises:
            MisuseError: it was not run to its end, so that the next one would read the same.
        """

    def close(self, job: str) -> None:
        """Say what came of the loop, after its last run. Raises what it has to raise at its end."""
