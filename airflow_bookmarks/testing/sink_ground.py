"""What the conformance suite of sinks needs from the test of a sink, and the outputs and publishers that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import FencedError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, Run, RunKey, RunState
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.sinks.sink import CommittingSink, SideOutput, StagedSink
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.store.blobs import BlobStore

JOB = Territory("test", "job")
OTHER_JOB = Territory("test", "other")
NAME = "out"


class StagedSinkGround(Protocol):
    """A staged sink and an empty target, for one test."""

    sink: StagedSink
    request: StagingRequest
    blobs: BlobStore

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        """Write rows where the output is staged, as a driver does, and return the output as the commit stores it.

        With `overwrites`, its publish replaces everything that is in the target now.
        """
        ...

    def put(self, row: str) -> None:
        """Put a row that no run has written into the target."""
        ...

    def visible(self) -> Sequence[str]:
        """Return the rows in the target, as readers see them."""
        ...

    def staged(self) -> set[RunKey]:
        """Return the runs that have something staged."""
        ...

    def outside(self) -> object:
        """Return everything outside the target and the staging of the job `JOB`, to be compared with `==`."""
        ...


class CommittingSinkGround(Protocol):
    """A sink that commits by itself and an empty target, for one test."""

    sink: CommittingSink
    request: StagingRequest
    blobs: BlobStore

    def write(self, output: StoredOutput, fence: int, rows: Sequence[str]) -> bool:
        """Write rows in one step under the token of a fence, and return whether the sink accepted them."""
        ...

    def visible(self) -> Sequence[str]:
        """Return the rows in the target."""
        ...


class CleanedSinkGround(Protocol):
    """What the ground of a `CleanedSink` has as well."""

    def touch(self, row: str) -> str:
        """Change a row that a run has made visible, as another writer does, and return the new row."""
        ...


class ExaminedSinkGround(Protocol):
    """What the ground of an `ExaminedSink` has as well."""

    def lose_target(self) -> None:
        """Remove the target with all that is in it, as another writer does; what is staged stays."""
        ...


class SidewaysSinkGround(StagedSinkGround, Protocol):
    """What the ground of a `SidewaysSink` has as well."""

    def stage_aside(self, output: SideOutput, rows: Sequence[str]) -> Staged:
        """Write rows where a pause or disable run stages the output, and return what its script reports as staged."""
        ...

    def staged_aside(self) -> set[str]:
        """Return the ids of the pause and disable runs that have something staged."""
        ...


class KilledError(BaseException):
    """Raised in place of the death of a process; nothing catches it."""


def staging_root(ground: StagedSinkGround, who_looks: str) -> str:
    """Return the staging root of the job, which some command (`who_looks`) has to be told."""
    _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    assert root is not None, f"stage() names no staging root, and {who_looks} looks for what is staged there"
    return root


def stored_output(
    entry: OutputEntry,
    key: RunKey,
    blobs: BlobStore,
    fences: tuple[int, ...] = (),
    state: RunState = RunState.COMMITTED,
    name: str = NAME,
) -> StoredOutput:
    """Return an output as the commit of its run stores it; `fences` are all fences that the run has had."""
    run = Run(
        key,
        state,
        epoch=0,
        run_id="task",
        attempt=1,
        planned_at="2026-01-01T00:00:00.000Z",
        fences=fences or (key.fence,),
        outputs={name: entry},
    )
    return StoredOutput(JOB, run, name, blobs)


class Publisher:
    """A process that publishes, and that may die after some steps or find that the job was taken from it."""

    def __init__(self, dies_after: int | None = None, *, is_fenced: bool = False) -> None:
        self._left, self._is_fenced = dies_after, is_fenced

    def publish(self, ground: StagedSinkGround, output: StoredOutput) -> None:
        """Publish an output, and die at the chosen step."""
        publication = ground.sink.prepare(output)
        if publication is not None:
            publication.publish(self._check_held, PublishSteps(self._count, lambda: 0.0))

    def _check_held(self, what: str) -> None:
        if self._is_fenced:
            raise FencedError(f"the job was taken; nothing was done to {what}")
        self._count()

    def _count(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise KilledError
