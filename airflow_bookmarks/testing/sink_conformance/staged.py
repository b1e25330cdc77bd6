"""Tests of a sink that stages, and of one that also replaces what is in its target."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, FencedError
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
from airflow_bookmarks.testing.sink_conformance.cleaned import CleanedSinkConformance, clean, cleaned_sink
from airflow_bookmarks.testing.sink_conformance.examined import ExaminedSinkConformance
from airflow_bookmarks.testing.sink_conformance.refusal import is_refused
from airflow_bookmarks.testing.sink_conformance.sideways import CollectedSinkConformance
from airflow_bookmarks.testing.sink_ground import JOB, NAME, OTHER_JOB, KilledError, Publisher, stored_output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.sinks.sink import Publication
    from airflow_bookmarks.testing.sink_ground import StagedSinkGround


class StagedSinkConformance(CleanedSinkConformance, CollectedSinkConformance, ExaminedSinkConformance):
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

    def test_outputs_of_a_run_are_visible_once_by_what_joins_them(self, ground: StagedSinkGround) -> None:
        key = RunKey(1, 1)
        prepared: dict[str, Publication] = {}
        for name in (NAME, "other"):
            entry, _ = ground.sink.stage(JOB, key, name, ground.request)
            staged = ground.stage(stored_output(entry, key, ground.blobs, name=name), [name])
            publication = ground.sink.prepare(stored_output(staged, key, ground.blobs, name=name))
            assert publication is not None
            prepared[name] = publication
        joined = ground.sink.joined(prepared)
        assert sorted(name for names in joined for name in names) == sorted(prepared)
        for each in [*joined.values()] * 2:
            each.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        assert sorted(ground.visible()) == sorted(prepared)

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

    def test_rows_that_another_run_writes_again_are_there_once_if_the_sink_says_so(
        self, ground: StagedSinkGround
    ) -> None:
        for number in (1, 2):
            output = self.staged_output(ground, RunKey(number, number), ["a", "b"])
            Publisher().publish(ground, output)
        assert set(ground.visible()) == {"a", "b"}
        if ground.sink.holds_rows_once(output.entry):
            assert sorted(ground.visible()) == ["a", "b"]

    def test_output_counts_as_unpublished_only_before_its_publish(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        was_unpublished = ground.sink.is_unpublished(output)
        assert list(ground.visible()) == []
        Publisher().publish(ground, output)
        assert not ground.sink.is_unpublished(output)
        late = self.staged_output(ground, RunKey(2, 2), ["b"])
        assert ground.sink.is_unpublished(late) == was_unpublished

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
        assert is_refused(lambda: ground.sink.prepare(foreign))
        assert list(ground.visible()) == []

    def test_staging_root_of_another_job_is_neither_accepted_nor_swept(self, ground: StagedSinkGround) -> None:
        self.staged_output(ground, RunKey(1, 1), ["a"])
        _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
        if root is None:
            return
        ground.sink.check_root(JOB, root)
        assert is_refused(lambda: ground.sink.check_root(OTHER_JOB, root))
        assert is_refused(lambda: ground.sink.sweep(OTHER_JOB, root, 9))
        assert ground.staged() == {RunKey(1, 1)}

    def test_refusal_of_a_clean_says_why(self, ground: StagedSinkGround) -> None:
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        why = ground.sink.why_not_clean(output.entry)
        assert why is None or why.strip()

    def test_clean_removes_what_each_fence_of_an_undone_run_staged_and_no_more(self, ground: StagedSinkGround) -> None:
        cleaned_sink(ground)
        for key in (RunKey(1, 1), RunKey(2, 2), RunKey(22, 22)):
            self.staged_output(ground, key, [f"of {key}"])
        entry = self.staged_output(ground, RunKey(2, 5), ["a"]).entry
        undone = stored_output(entry, RunKey(2, 5), ground.blobs, (2, 5))
        late = ground.sink.prepare(undone)
        clean(ground, undone)
        assert ground.staged() == {RunKey(1, 1), RunKey(22, 22)}
        assert late is not None
        with suppress(BookmarkError):  # to refuse is as good
            late.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        assert list(ground.visible()) == []

    def test_clean_leaves_rows_of_other_writers_and_what_lies_outside(self, ground: StagedSinkGround) -> None:
        cleaned_sink(ground)
        ground.put("of another writer")
        before = ground.outside()
        clean(ground, self.shown_output(ground, RunKey(1, 1), ["a"]))
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

    def test_overwrite_holds_rows_once_if_the_sink_says_so(self, ground: StagedSinkGround) -> None:
        ground.put("a")
        output = self.staged_output(ground, RunKey(1, 1), ["a"], overwrites=True)
        Publisher().publish(ground, output)
        assert list(ground.visible()) == ["a"] or not ground.sink.holds_rows_once(output.entry)

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
