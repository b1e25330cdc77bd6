"""What every sink promises: a kind of sink is right when a subclass of one of these classes passes with pytest.

    StagedSinkConformance        a sink that stages, and publishes after the commit
    OverwritingSinkConformance   the same, for one that replaces what earlier runs published
    CommittingSinkConformance    a sink that commits by itself, under the token of a run

A subclass is named `Test...` and has a pytest fixture `ground`, which makes an empty target for one test:

    class TestMySink(StagedSinkConformance):
        @pytest.fixture
        def ground(self, tmp_path):
            return MyGround(tmp_path)
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import BookmarkError, FencedError, OutOfBoundsError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, Run, RunKey, RunState
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.sinks.sink import CommittingSink, StagedSink
    from airflow_bookmarks.sinks.staging import StagingRequest
    from airflow_bookmarks.store.blobs import BlobStore

JOB = Territory("test", "job")
_OTHER_JOB = Territory("test", "other")
_NAME = "out"


class StagedSinkGround(Protocol):
    """A staged sink and an empty target, for one test."""

    sink: StagedSink
    request: StagingRequest
    blobs: BlobStore

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        """Write rows where the output is staged, as a driver does; return the output as the commit stores it.

        `overwrites`: its publish replaces everything that is in the target now.
        """
        ...

    def put(self, row: str) -> None:
        """Put a row into the target that no run has written."""
        ...

    def visible(self) -> Sequence[str]:
        """Return the rows in the target, as readers see them."""
        ...

    def staged(self) -> set[RunKey]:
        """Return the runs of which something is staged."""
        ...

    def outside(self) -> object:
        """Return what lies beside the target and the staging of the job `JOB`, to be compared with `==`."""
        ...


class CommittingSinkGround(Protocol):
    """A sink that commits by itself and an empty target, for one test."""

    sink: CommittingSink
    request: StagingRequest
    blobs: BlobStore

    def write(self, output: StoredOutput, fence: int, rows: Sequence[str]) -> bool:
        """Write rows in one step under the token of a fence; return whether the sink took them."""
        ...

    def visible(self) -> Sequence[str]:
        """Return the rows in the target."""
        ...


class _KilledError(BaseException):
    """Stands for the death of a process: nothing catches it."""


def _output(entry: OutputEntry, key: RunKey, blobs: BlobStore, fences: tuple[int, ...] = ()) -> StoredOutput:
    run = Run(
        key,
        RunState.COMMITTED,
        epoch=0,
        run_id="task",
        attempt=1,
        planned_at="2026-01-01T00:00:00.000Z",
        fences=fences or (key.fence,),
        outputs={_NAME: entry},
    )
    return StoredOutput(JOB, run, _NAME, blobs)


class _Publisher:
    """A process that publishes: it may die after so many steps, or find that the job was taken from it."""

    def __init__(self, dies_after: int | None = None, *, is_fenced: bool = False) -> None:
        self._left, self._is_fenced = dies_after, is_fenced

    def publish(self, ground: StagedSinkGround, output: StoredOutput) -> None:
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
                raise _KilledError


class StagedSinkConformance:
    """The promises of a sink that stages."""

    def staged_output(
        self, ground: StagedSinkGround, key: RunKey, rows: Sequence[str], *, overwrites: bool = False
    ) -> StoredOutput:
        """Stage rows under a run item; return the output as its commit stores it."""
        entry, _ = ground.sink.stage(JOB, key, _NAME, ground.request)
        placed = _output(entry, key, ground.blobs)
        return _output(ground.stage(placed, rows, overwrites=overwrites), key, ground.blobs)

    def test_nothing_is_visible_before_the_publish(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a", "b"])
        assert ground.sink.prepare(output) is not None
        assert list(ground.visible()) == []

    def test_publish_makes_each_row_visible_once(self, ground: StagedSinkGround) -> None:
        ground.put("of another writer")
        _Publisher().publish(ground, self.staged_output(ground, RunKey(1, 1), ["a", "b"]))
        assert sorted(ground.visible()) == ["a", "b", "of another writer"]

    def test_publish_can_be_repeated(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a", "b"])
        for _ in range(3):
            _Publisher().publish(ground, output)
        assert sorted(ground.visible()) == ["a", "b"]

    def test_publish_that_dies_after_any_step_is_finished_by_another(self, ground: StagedSinkGround) -> None:
        rows: list[str] = []

        def staged(number: int) -> StoredOutput:
            rows.extend([f"{number} first", f"{number} second", f"{number} third"])
            return self.staged_output(ground, RunKey(number, number), rows[-3:])

        _die_after_each_step(ground, staged, lambda: Counter(ground.visible()) == Counter(rows))

    def test_two_run_items_share_no_place(self, ground: StagedSinkGround) -> None:
        keys = [RunKey(1, 1), RunKey(1, 2), RunKey(2, 3), RunKey(12, 3)]
        places = {ground.sink.stage(JOB, key, name, ground.request)[0].place for key in keys for name in ("a", "b")}
        assert len(places) == 8

    def test_sweep_removes_what_this_fence_and_lower_ones_staged_and_no_more(self, ground: StagedSinkGround) -> None:
        root = None
        for key in (RunKey(1, 3), RunKey(1, 5), RunKey(2, 30), RunKey(2, 51)):
            self.staged_output(ground, key, [f"of {key}"])
            _, root = ground.sink.stage(JOB, key, _NAME, ground.request)
        if root is None:
            return  # nothing is listed, so no sweep is ever asked for
        for _ in range(2):
            ground.sink.sweep(JOB, root, 5)
            assert ground.staged() == {RunKey(2, 30), RunKey(2, 51)}

    def test_sweep_takes_no_published_row(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        _Publisher().publish(ground, output)
        _, root = ground.sink.stage(JOB, RunKey(1, 1), _NAME, ground.request)
        if root is not None:
            ground.sink.sweep(JOB, root, 1)
        assert list(ground.visible()) == ["a"]

    def test_publisher_that_comes_after_the_sweep_changes_nothing(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        late = ground.sink.prepare(output)
        _Publisher().publish(ground, output)
        _, root = ground.sink.stage(JOB, RunKey(1, 1), _NAME, ground.request)
        if root is not None:
            ground.sink.sweep(JOB, root, 1)
        assert late is not None
        with suppress(BookmarkError):  # to refuse is as good
            late.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        assert list(ground.visible()) == ["a"]

    def test_publish_and_sweep_touch_nothing_outside(self, ground: StagedSinkGround) -> None:
        before = ground.outside()
        _Publisher().publish(ground, self.staged_output(ground, RunKey(1, 1), ["a"]))
        _, root = ground.sink.stage(JOB, RunKey(1, 1), _NAME, ground.request)
        if root is not None:
            ground.sink.sweep(JOB, root, 1)
        assert ground.outside() == before

    def test_output_of_another_job_is_refused(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        foreign = StoredOutput(_OTHER_JOB, output.run, output.name, output.blobs)
        assert _is_refused(lambda: ground.sink.prepare(foreign))
        assert list(ground.visible()) == []

    def test_staging_root_of_another_job_is_neither_accepted_nor_swept(self, ground: StagedSinkGround) -> None:
        self.staged_output(ground, RunKey(1, 1), ["a"])
        _, root = ground.sink.stage(JOB, RunKey(1, 1), _NAME, ground.request)
        if root is None:
            return
        ground.sink.check_root(JOB, root)
        assert _is_refused(lambda: ground.sink.check_root(_OTHER_JOB, root))
        assert _is_refused(lambda: ground.sink.sweep(_OTHER_JOB, root, 9))
        assert ground.staged() == {RunKey(1, 1)}

    def test_refusal_of_a_clean_says_why(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        why = ground.sink.why_not_clean(output.entry)
        assert why is None or why.strip()


class OverwritingSinkConformance(StagedSinkConformance):
    """The promises of a sink that stages, and can replace what is in its target."""

    def test_overwrite_replaces_what_was_there_at_its_commit_and_nothing_later(self, ground: StagedSinkGround) -> None:
        ground.put("earlier")
        output = self.staged_output(ground, RunKey(1, 1), ["a"], overwrites=True)
        ground.put("later")
        for _ in range(2):
            _Publisher().publish(ground, output)
            assert sorted(ground.visible()) == ["a", "later"]

    def test_overwrite_that_dies_after_any_step_is_finished_by_another(self, ground: StagedSinkGround) -> None:
        rows: list[str] = []

        def staged(number: int) -> StoredOutput:
            rows[:] = [f"{number} first", f"{number} second"]
            return self.staged_output(ground, RunKey(number, number), rows, overwrites=True)

        _die_after_each_step(ground, staged, lambda: Counter(ground.visible()) == Counter(rows))

    def test_publisher_that_was_fenced_replaces_nothing(self, ground: StagedSinkGround) -> None:
        ground.put("earlier")
        output = self.staged_output(ground, RunKey(1, 1), ["a"], overwrites=True)
        with suppress(FencedError):
            _Publisher(is_fenced=True).publish(ground, output)
        assert "earlier" in ground.visible()


class CommittingSinkConformance:
    """The promises of a sink that commits by itself."""

    def stored_output(self, ground: CommittingSinkGround, fences: tuple[int, ...]) -> StoredOutput:
        """Return the output of a run that has had these fences, the last of them its own."""
        entry = OutputEntry(ground.request.sink, ground.request.target, "", commits_by_itself=True)
        return _output(entry, RunKey(1, fences[-1]), ground.blobs, fences)

    def test_rows_land_once_under_a_token(self, ground: CommittingSinkGround) -> None:
        output = self.stored_output(ground, (3,))
        assert ground.write(output, 3, ["a"])
        assert not ground.write(output, 3, ["a"])
        assert list(ground.visible()) == ["a"]

    def test_burned_token_takes_no_rows(self, ground: CommittingSinkGround) -> None:
        output = self.stored_output(ground, (3,))
        for _ in range(2):
            ground.sink.burn(output, 5)
        assert not ground.write(output, 3, ["a"])
        assert not ground.write(output, 4, ["a"])
        assert list(ground.visible()) == []
        assert not ground.sink.landed(output)

    def test_burn_leaves_the_token_of_its_own_fence(self, ground: CommittingSinkGround) -> None:
        ground.sink.burn(self.stored_output(ground, (3,)), 5)
        assert ground.write(self.stored_output(ground, (5,)), 5, ["a"])
        assert list(ground.visible()) == ["a"]

    def test_burn_of_an_earlier_fence_takes_nothing_back(self, ground: CommittingSinkGround) -> None:
        output = self.stored_output(ground, (5,))
        assert ground.write(output, 5, ["a"])
        ground.sink.burn(self.stored_output(ground, (3,)), 4)
        assert (list(ground.visible()), ground.sink.landed(output)) == (["a"], True)

    def test_landed_rows_are_found_after_the_burn_under_each_fence_of_the_run(
        self, ground: CommittingSinkGround
    ) -> None:
        assert ground.write(self.stored_output(ground, (3,)), 3, ["a"])
        taken_over = self.stored_output(ground, (3, 5))
        ground.sink.burn(taken_over, 7)
        assert ground.sink.landed(taken_over)
        assert not ground.sink.landed(self.stored_output(ground, (4,)))

    def test_refusal_of_a_clean_says_why(self, ground: CommittingSinkGround) -> None:
        why = ground.sink.why_not_clean(self.stored_output(ground, (3,)).entry)
        assert why is None or why.strip()


def _die_after_each_step(
    ground: StagedSinkGround, staged: Callable[[int], StoredOutput], is_whole: Callable[[], bool]
) -> None:
    """Publish one run after another, each killed one step later than the one before, and finished by another."""
    for step in range(1000):
        output = staged(step + 1)
        try:
            _Publisher(step).publish(ground, output)
        except _KilledError:
            _Publisher().publish(ground, output)
            assert is_whole()
        else:
            assert is_whole()
            return
    raise AssertionError("a publish of a few rows takes 1,000 steps")


def _is_refused(change: Callable[[], object]) -> bool:
    try:
        change()
    except OutOfBoundsError:
        return True
    return False
