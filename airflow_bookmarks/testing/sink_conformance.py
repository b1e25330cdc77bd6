"""The conformance suite of sinks: a kind of sink is correct if a subclass of one of these classes passes with pytest.

    StagedSinkConformance        a sink that stages, and publishes after the commit
    OverwritingSinkConformance   the same, for one that replaces what earlier runs published
    CommittingSinkConformance    a sink that commits by itself, under the token of a run

They include tests of optional abilities, and skip those that a sink lacks, saying what is then not shown:

    CleanedSinkConformance       a clean removes what undone runs have staged and made visible (`CleanedSink`)
    SidewaysSinkConformance      pause and disable runs write to it (`SidewaysSink`)
    CollectedSinkConformance     gc removes what such runs left staged when they were killed (`CollectedSink`)

Name the subclass `Test...` and give it a pytest fixture `ground`, which makes an empty target for one test; the
classes in `sink_ground` define it. Import this module in test modules only: it needs pytest.

    class TestMySink(StagedSinkConformance):
        @pytest.fixture
        def ground(self, tmp_path):
            return MyGround(tmp_path)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_bookmarks.core.errors import BookmarkError, CleanRefusedError, FencedError, OutOfBoundsError
from airflow_bookmarks.core.run import OutputEntry, RunKey, RunState
from airflow_bookmarks.sinks.clean import CleanedSink, CleanGround, CleanList
from airflow_bookmarks.sinks.sink import CollectedSink, PublishSteps, SideOutput, SidewaysSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged
from airflow_bookmarks.testing.sink_ground import JOB as JOB
from airflow_bookmarks.testing.sink_ground import NAME, OTHER_JOB, KilledError, Publisher, stored_output
from airflow_bookmarks.testing.sink_ground import CommittingSinkGround as CommittingSinkGround
from airflow_bookmarks.testing.sink_ground import StagedSinkGround as StagedSinkGround

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.testing.sink_ground import SidewaysSinkGround

_SIDE_RUN, _SIDE_RUN_2 = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"  # as the store makes ids


class CleanedSinkConformance(ABC):
    """Test a sink that a clean can remove rows from. Its ground has `touch` (`CleanedSinkGround`)."""

    @abstractmethod
    def shown_output(self, ground: Any, key: RunKey, rows: Sequence[str]) -> StoredOutput:
        """Make rows visible as a run does, and return the output as it is then stored."""

    def test_output_that_a_clean_can_remove_is_not_refused(self, ground: Any) -> None:
        output = self.shown_output(ground, RunKey(1, 1), ["a"])
        assert _cleaned_sink(ground).why_not_clean(output.entry) is None

    def test_clean_removes_what_undone_runs_made_visible_and_no_more(self, ground: Any) -> None:
        _cleaned_sink(ground)
        keys = [RunKey(1, 1), RunKey(2, 2), RunKey(3, 3), RunKey(12, 22), RunKey(22, 23)]
        outputs = [self.shown_output(ground, key, [f"{key} first", f"{key} second"]) for key in keys]
        _clean(ground, outputs[1], outputs[2])
        kept = [f"{key} {which}" for key in (keys[0], keys[3], keys[4]) for which in ("first", "second")]
        assert sorted(ground.visible()) == sorted(kept)

    def test_clean_can_be_repeated(self, ground: Any) -> None:
        _cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a"])
        listed = _listed(ground, undone)
        _carry_out(ground, listed, undone)
        self.shown_output(ground, RunKey(2, 2), ["b"])
        for _ in range(2):
            _carry_out(ground, listed, undone)
            assert list(ground.visible()) == ["b"]

    def test_clean_removes_nothing_while_it_is_prepared_nor_of_living_runs(self, ground: Any) -> None:
        sink = _cleaned_sink(ground)
        output = self.shown_output(ground, RunKey(1, 1), ["a"])
        listed = _listed(ground, output)
        sink.prepare_clean(_clean_ground(ground, output), listed)
        assert list(ground.visible()) == ["a"]
        assert _is_refused(lambda: sink.prepare_clean(_clean_ground(ground), listed))
        assert list(ground.visible()) == ["a"]

    def test_clean_leaves_what_somebody_else_touched_since_it_was_listed(self, ground: Any) -> None:
        _cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a", "b"])
        listed = _listed(ground, undone)
        touched = ground.touch("a")
        _carry_out(ground, listed, undone)
        assert list(ground.visible()) == [touched]

    def test_clean_leaves_what_somebody_else_touched_before_or_is_refused(self, ground: Any) -> None:
        _cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a", "b"])
        touched = ground.touch("a")
        with suppress(CleanRefusedError):
            _clean(ground, undone)
        assert touched in ground.visible()

    def test_what_an_undone_run_has_left_is_what_a_later_clean_removes(self, ground: Any) -> None:
        sink = _cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a", "b"])
        touched = ground.touch("b")
        left = sink.left(undone)
        if left is None:
            pytest.skip("left() knows nothing: nothing shows that a clean takes what an earlier change has left")
        _carry_out(ground, left, undone)
        assert list(ground.visible()) == [touched]
        again = sink.left(undone)
        assert again is None or not again.by_sink()


class SidewaysSinkConformance:
    """Test a sink that pause and disable runs write to. Its ground is a `SidewaysSinkGround`."""

    def side_output(self, ground: SidewaysSinkGround, run: str, rows: Sequence[str]) -> SideOutput:
        """Stage rows as a pause run does, and return its output."""
        entry = _sideways_sink(ground).stage_aside(JOB, run, NAME, ground.request)
        placed = SideOutput(JOB, "pause", f"side-{run}", NAME, entry, Staged(()))
        return replace(placed, staged=ground.stage_aside(placed, rows))

    def test_side_run_shows_nothing_before_its_publish(self, ground: SidewaysSinkGround) -> None:
        sink = _sideways_sink(ground)
        output = self.side_output(ground, _SIDE_RUN, ["a"])
        sink.prepare_aside(output)
        assert (list(ground.visible()), ground.staged_aside()) == ([], {_SIDE_RUN})

    def test_side_publish_makes_each_row_visible_once_and_can_be_repeated(self, ground: SidewaysSinkGround) -> None:
        _sideways_sink(ground)
        ground.put("of another writer")
        output = self.side_output(ground, _SIDE_RUN, ["a", "b"])
        for _ in range(3):
            _publish_aside(ground, output)
            assert sorted(ground.visible()) == ["a", "b", "of another writer"]

    def test_side_runs_share_no_place_with_any_run(self, ground: SidewaysSinkGround) -> None:
        sink, names = _sideways_sink(ground), ("a", "b")
        places = {sink.stage(JOB, RunKey(1, 1), name, ground.request)[0].place for name in names}
        places |= {
            sink.stage_aside(JOB, run, name, ground.request).place for run in (_SIDE_RUN, _SIDE_RUN_2) for name in names
        }
        assert len(places) == 6

    def test_staging_of_a_side_run_is_swept_by_nobody_else(self, ground: SidewaysSinkGround) -> None:
        sink = _sideways_sink(ground)
        output, other = self.side_output(ground, _SIDE_RUN, ["a"]), self.side_output(ground, _SIDE_RUN_2, ["b"])
        entry, root = sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        placed = stored_output(entry, RunKey(1, 1), ground.blobs)
        Publisher().publish(ground, stored_output(ground.stage(placed, ["c"]), RunKey(1, 1), ground.blobs))
        if root is not None:
            sink.sweep(JOB, root, 1_000)
        assert (list(ground.visible()), ground.staged_aside()) == (["c"], {_SIDE_RUN, _SIDE_RUN_2})
        sink.sweep_aside(other)
        assert ground.staged_aside() == {_SIDE_RUN}
        _publish_aside(ground, output)
        assert sorted(ground.visible()) == ["a", "c"]

    def test_side_run_sweeps_what_it_staged_and_no_more(self, ground: SidewaysSinkGround) -> None:
        sink = _sideways_sink(ground)
        entry, _ = sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        ground.stage(stored_output(entry, RunKey(1, 1), ground.blobs), ["of a run"])
        published, unpublished = (
            self.side_output(ground, _SIDE_RUN, ["a"]),
            self.side_output(ground, _SIDE_RUN_2, ["b"]),
        )
        _publish_aside(ground, published)
        sink.sweep_aside(published)
        sink.sweep_aside(unpublished)
        assert (list(ground.visible()), ground.staged_aside()) == (["a"], set())
        assert ground.staged() == {RunKey(1, 1)}

    def test_side_run_touches_nothing_outside(self, ground: SidewaysSinkGround) -> None:
        sink, before = _sideways_sink(ground), ground.outside()
        output = self.side_output(ground, _SIDE_RUN, ["a"])
        _publish_aside(ground, output)
        sink.sweep_aside(output)
        assert ground.outside() == before

    def test_side_output_of_another_job_is_refused(self, ground: SidewaysSinkGround) -> None:
        sink = _sideways_sink(ground)
        output = replace(self.side_output(ground, _SIDE_RUN, ["a"]), territory=OTHER_JOB)
        assert _is_refused(lambda: sink.prepare_aside(output))
        assert list(ground.visible()) == []


class CollectedSinkConformance(SidewaysSinkConformance):
    """Test a sink in which `gc` removes what killed pause and disable runs have left staged."""

    def test_staging_of_side_runs_is_found_by_their_ids_and_no_other_is(self, ground: SidewaysSinkGround) -> None:
        sink, root = _collected_sink(ground)
        entry, _ = sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        ground.stage(stored_output(entry, RunKey(1, 1), ground.blobs), ["of a run"])
        assert set(sink.left_aside(JOB, root)) == set()
        self.side_output(ground, _SIDE_RUN, ["a"])
        self.side_output(ground, _SIDE_RUN_2, ["b", "c"])
        assert set(sink.left_aside(JOB, root)) == {_SIDE_RUN, _SIDE_RUN_2}

    def test_leftovers_of_one_side_run_are_removed_and_no_more(self, ground: SidewaysSinkGround) -> None:
        sink, root = _collected_sink(ground)
        before = ground.outside()
        entry, _ = sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        ground.stage(stored_output(entry, RunKey(1, 1), ground.blobs), ["of a run"])
        ground.put("of another writer")
        _publish_aside(ground, self.side_output(ground, _SIDE_RUN, ["a", "b"]))
        self.side_output(ground, _SIDE_RUN_2, ["c"])
        for _ in range(2):
            sink.remove_aside(JOB, root, _SIDE_RUN)
            assert (ground.staged_aside(), ground.staged()) == ({_SIDE_RUN_2}, {RunKey(1, 1)})
        sink.remove_aside(JOB, root, _SIDE_RUN_2)
        assert (ground.staged_aside(), set(sink.left_aside(JOB, root))) == (set(), set())
        assert sorted(ground.visible()) == ["a", "b", "of another writer"]
        assert ground.outside() == before

    def test_leftovers_beside_the_staging_of_another_job_are_refused(self, ground: SidewaysSinkGround) -> None:
        sink, root = _collected_sink(ground)
        self.side_output(ground, _SIDE_RUN, ["a"])
        assert _is_refused(lambda: sink.left_aside(OTHER_JOB, root))
        assert _is_refused(lambda: sink.remove_aside(OTHER_JOB, root, _SIDE_RUN))
        assert ground.staged_aside() == {_SIDE_RUN}


class StagedSinkConformance(CleanedSinkConformance, CollectedSinkConformance):
    """Test a sink that stages."""

    def shown_output(self, ground: Any, key: RunKey, rows: Sequence[str]) -> StoredOutput:
        """Return the output of a run that has published these rows."""
        staged = self.staged_output(ground, key, rows)
        Publisher().publish(ground, staged)
        return stored_output(staged.entry, key, ground.blobs, state=RunState.PUBLISHED)

    def staged_output(
        self, ground: StagedSinkGround, key: RunKey, rows: Sequence[str], *, overwrites: bool = False
    ) -> StoredOutput:
        """Stage rows under a run item, and return the output as its commit stores it."""
        entry, _ = ground.sink.stage(JOB, key, NAME, ground.request)
        placed = stored_output(entry, key, ground.blobs)
        return stored_output(ground.stage(placed, rows, overwrites=overwrites), key, ground.blobs)

    def test_nothing_is_visible_before_the_publish(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a", "b"])
        assert ground.sink.prepare(output) is not None
        assert list(ground.visible()) == []

    def test_publish_makes_each_row_visible_once(self, ground: StagedSinkGround) -> None:
        ground.put("of another writer")
        Publisher().publish(ground, self.staged_output(ground, RunKey(1, 1), ["a", "b"]))
        assert sorted(ground.visible()) == ["a", "b", "of another writer"]

    def test_publish_can_be_repeated(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a", "b"])
        for _ in range(3):
            Publisher().publish(ground, output)
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
            _, root = ground.sink.stage(JOB, key, NAME, ground.request)
        if root is None:
            return  # nothing is listed, so no sweep is ever asked for
        for _ in range(2):
            ground.sink.sweep(JOB, root, 5)
            assert ground.staged() == {RunKey(2, 30), RunKey(2, 51)}

    def test_sweep_takes_no_published_row(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        Publisher().publish(ground, output)
        _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        if root is not None:
            ground.sink.sweep(JOB, root, 1)
        assert list(ground.visible()) == ["a"]

    def test_publisher_that_comes_after_the_sweep_changes_nothing(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        late = ground.sink.prepare(output)
        Publisher().publish(ground, output)
        _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        if root is not None:
            ground.sink.sweep(JOB, root, 1)
        assert late is not None
        with suppress(BookmarkError):  # to refuse is as good
            late.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        assert list(ground.visible()) == ["a"]

    def test_publish_and_sweep_touch_nothing_outside(self, ground: StagedSinkGround) -> None:
        before = ground.outside()
        Publisher().publish(ground, self.staged_output(ground, RunKey(1, 1), ["a"]))
        _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        if root is not None:
            ground.sink.sweep(JOB, root, 1)
        assert ground.outside() == before

    def test_output_of_another_job_is_refused(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        foreign = StoredOutput(OTHER_JOB, output.run, output.name, output.blobs)
        assert _is_refused(lambda: ground.sink.prepare(foreign))
        assert list(ground.visible()) == []

    def test_staging_root_of_another_job_is_neither_accepted_nor_swept(self, ground: StagedSinkGround) -> None:
        self.staged_output(ground, RunKey(1, 1), ["a"])
        _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        if root is None:
            return
        ground.sink.check_root(JOB, root)
        assert _is_refused(lambda: ground.sink.check_root(OTHER_JOB, root))
        assert _is_refused(lambda: ground.sink.sweep(OTHER_JOB, root, 9))
        assert ground.staged() == {RunKey(1, 1)}

    def test_refusal_of_a_clean_says_why(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        why = ground.sink.why_not_clean(output.entry)
        assert why is None or why.strip()

    def test_clean_removes_what_each_fence_of_an_undone_run_staged_and_no_more(self, ground: StagedSinkGround) -> None:
        _cleaned_sink(ground)
        for key in (RunKey(1, 1), RunKey(2, 2), RunKey(22, 22)):
            self.staged_output(ground, key, [f"of {key}"])
        entry = self.staged_output(ground, RunKey(2, 5), ["a"]).entry
        undone = stored_output(entry, RunKey(2, 5), ground.blobs, (2, 5))
        late = ground.sink.prepare(undone)
        _clean(ground, undone)
        assert ground.staged() == {RunKey(1, 1), RunKey(22, 22)}
        assert late is not None
        with suppress(BookmarkError):  # to refuse is as good
            late.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        assert list(ground.visible()) == []

    def test_clean_leaves_rows_of_other_writers_and_what_lies_outside(self, ground: StagedSinkGround) -> None:
        _cleaned_sink(ground)
        ground.put("of another writer")
        before = ground.outside()
        _clean(ground, self.shown_output(ground, RunKey(1, 1), ["a"]))
        assert (list(ground.visible()), ground.outside()) == (["of another writer"], before)


class OverwritingSinkConformance(StagedSinkConformance):
    """Test a sink that stages, and that can replace what is in its target."""

    def test_overwrite_replaces_what_was_there_at_its_commit_and_nothing_later(self, ground: StagedSinkGround) -> None:
        ground.put("earlier")
        output = self.staged_output(ground, RunKey(1, 1), ["a"], overwrites=True)
        ground.put("later")
        for _ in range(2):
            Publisher().publish(ground, output)
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
            Publisher(is_fenced=True).publish(ground, output)
        assert "earlier" in ground.visible()


class CommittingSinkConformance(CleanedSinkConformance):
    """Test a sink that commits by itself."""

    def shown_output(self, ground: Any, key: RunKey, rows: Sequence[str]) -> StoredOutput:
        """Return the output of a run whose rows have landed."""
        entry = self.stored_output(ground, (key.fence,)).entry
        output = stored_output(entry, key, ground.blobs, state=RunState.PUBLISHED)
        assert ground.write(output, key.fence, rows)
        return output

    def stored_output(self, ground: CommittingSinkGround, fences: tuple[int, ...]) -> StoredOutput:
        """Return the output of a run that has had these fences, the last of them its own."""
        entry = OutputEntry(ground.request.sink, ground.request.target, "", commits_by_itself=True)
        return stored_output(entry, RunKey(1, fences[-1]), ground.blobs, fences)

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
            Publisher(step).publish(ground, output)
        except KilledError:
            Publisher().publish(ground, output)
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


def _cleaned_sink(ground: Any) -> CleanedSink:
    if not isinstance(ground.sink, CleanedSink):
        pytest.skip(
            "the sink is no CleanedSink: nothing shows that a clean removes what undone runs wrote, and no more"
        )
    return ground.sink


def _clean_ground(ground: Any, *undone: StoredOutput) -> CleanGround:
    runs = {(output.run.key.number, fence): output.run for output in undone for fence in output.run.fences}
    return CleanGround(
        JOB, ground.blobs, lambda first, last: {key: run for key, run in runs.items() if first <= key[0] <= last}
    )


def _listed(ground: Any, *undone: StoredOutput) -> CleanList:
    """Return what a clean of undone outputs removes, as the process that carries it out reads it."""
    listed = CleanList.joined(_cleaned_sink(ground).list_clean(output, ()) for output in undone)
    return CleanList.decode(listed.encode())


def _carry_out(ground: Any, listed: CleanList, *undone: StoredOutput) -> None:
    for kind, part in listed.by_sink().items():
        assert kind == ground.sink.kind, f"the sink lists what is to be removed from another kind, {kind!r}"
        removals = _cleaned_sink(ground).prepare_clean(_clean_ground(ground, *undone), part)
        for removal in removals:
            removal.remove_staged()
        for removal in removals:
            removal.remove_visible()


def _clean(ground: Any, *undone: StoredOutput) -> None:
    _carry_out(ground, _listed(ground, *undone), *undone)


def _sideways_sink(ground: StagedSinkGround) -> SidewaysSink:
    if not isinstance(ground.sink, SidewaysSink):
        pytest.skip("the sink is no SidewaysSink: nothing shows that it takes what pause and disable runs write")
    return ground.sink


def _collected_sink(ground: SidewaysSinkGround) -> tuple[CollectedSink, str]:
    """Return the sink, and the staging root of the job."""
    sink = ground.sink
    if not isinstance(sink, CollectedSink):
        pytest.skip("the sink is no CollectedSink: nothing shows that gc removes what killed side runs have left")
    _, root = sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    assert root is not None, "stage() names no staging root, and gc looks beside that"
    return sink, root


def _publish_aside(ground: SidewaysSinkGround, output: SideOutput) -> None:
    _sideways_sink(ground).prepare_aside(output).publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
