"""Tests of a sink that tells `doctor` what lies in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from airflow_bookmarks.core.errors import OutOfBoundsError
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.sinks.examined import DifferenceKind, ExaminedSink, SinkDifference
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.testing.sink_conformance.refusal import is_refused
from airflow_bookmarks.testing.sink_ground import JOB, OTHER_JOB, Publisher, staging_root, stored_output

if TYPE_CHECKING:
    from collections.abc import Sequence


class ExaminedSinkConformance(ABC):
    """Test a sink that tells what lies in it. Its ground has `lose_target` (`ExaminedSinkGround`)."""

    @abstractmethod
    def staged_output(self, ground: Any, key: RunKey, rows: Sequence[str], *, overwrites: bool = False) -> StoredOutput:
        """Stage rows under a run item, and return the output as its commit stores it."""

    def test_what_each_run_has_staged_is_told_with_its_run(self, ground: Any) -> None:
        sink, root = _examined_sink(ground)
        assert dict(sink.staged_in(JOB, root)) == {}
        keys = [RunKey(1, 1), RunKey(2, 2), RunKey(12, 22)]
        for key in keys:
            self.staged_output(ground, key, [f"of {key}"])
        staged = sink.staged_in(JOB, root)
        assert (len(staged), set(staged.values())) == (3, set(keys))
        sink.sweep(JOB, root, 2)
        assert set(sink.staged_in(JOB, root).values()) == {RunKey(12, 22)}

    def test_one_place_is_dropped_and_no_more(self, ground: Any) -> None:
        sink, root = _examined_sink(ground)
        ground.put("of another writer")
        before = ground.outside()
        for key in (RunKey(1, 1), RunKey(2, 2)):
            self.staged_output(ground, key, [f"of {key}"])
        (place,) = [place for place, key in sink.staged_in(JOB, root).items() if key == RunKey(1, 1)]
        for _ in range(2):
            sink.drop_staged(JOB, root, place)
            assert (set(sink.staged_in(JOB, root).values()), ground.staged()) == ({RunKey(2, 2)}, {RunKey(2, 2)})
        assert (list(ground.visible()), ground.outside()) == (["of another writer"], before)

    def test_place_that_is_none_of_its_staging_stays(self, ground: Any) -> None:
        sink, root = _examined_sink(ground)
        ground.put("of another writer")
        self.staged_output(ground, RunKey(1, 1), ["a"])
        for place in (ground.request.target, "", f"{root}/.."):
            with suppress(OutOfBoundsError):  # to refuse is as good
                sink.drop_staged(JOB, root, place)
        assert (list(ground.visible()), ground.staged()) == (["of another writer"], {RunKey(1, 1)})

    def test_staging_of_another_job_is_neither_told_nor_dropped(self, ground: Any) -> None:
        sink, root = _examined_sink(ground)
        self.staged_output(ground, RunKey(1, 1), ["a"])
        (place,) = sink.staged_in(JOB, root)
        assert is_refused(lambda: sink.staged_in(OTHER_JOB, root))
        assert is_refused(lambda: sink.drop_staged(OTHER_JOB, root, place))
        assert ground.staged() == {RunKey(1, 1)}

    def test_output_that_waits_for_its_publish_is_told_and_not_changed(self, ground: Any) -> None:
        sink, _ = _examined_sink(ground)
        output, before = self.staged_output(ground, RunKey(1, 1), ["a"]), ground.outside()
        for _ in range(2):
            assert _kinds(sink.examine(output)) == [DifferenceKind.WAITS]
        assert (list(ground.visible()), ground.staged(), ground.outside()) == ([], {RunKey(1, 1)}, before)
        Publisher().publish(ground, output)
        assert list(ground.visible()) == ["a"]

    @pytest.mark.parametrize("state", [RunState.COMMITTED, RunState.PUBLISHED])
    def test_output_that_was_published_differs_in_nothing(self, ground: Any, state: RunState) -> None:
        """Also where the mark is missing; and later runs change nothing in that."""
        sink, root = _examined_sink(ground)
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        Publisher().publish(ground, output)
        told = stored_output(output.entry, RunKey(1, 1), ground.blobs, state=state)
        assert list(sink.examine(told)) == []
        sink.sweep(JOB, root, 1)
        Publisher().publish(ground, self.staged_output(ground, RunKey(2, 2), ["b"]))
        assert list(sink.examine(told)) == []

    def test_output_whose_staging_is_gone_before_its_publish_is_told(self, ground: Any) -> None:
        sink, root = _examined_sink(ground)
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        for place in sink.staged_in(JOB, root):
            sink.drop_staged(JOB, root, place)
        assert _kinds(sink.examine(output)) == [DifferenceKind.STAGED_GONE]

    def test_output_that_a_run_says_was_published_and_the_sink_does_not_is_told(self, ground: Any) -> None:
        sink, _ = _examined_sink(ground)
        entry = self.staged_output(ground, RunKey(1, 1), ["a"]).entry
        told = stored_output(entry, RunKey(1, 1), ground.blobs, state=RunState.PUBLISHED)
        assert _kinds(sink.examine(told)) == [DifferenceKind.NOT_PUBLISHED]

    def test_target_that_is_gone_is_told(self, ground: Any) -> None:
        sink, _ = _examined_sink(ground)
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        Publisher().publish(ground, output)
        ground.lose_target()
        told = stored_output(output.entry, RunKey(1, 1), ground.blobs, state=RunState.PUBLISHED)
        assert _kinds(sink.examine(told)) == [DifferenceKind.TARGET_GONE]

    def test_output_of_another_job_is_not_examined(self, ground: Any) -> None:
        sink, _ = _examined_sink(ground)
        output = self.staged_output(ground, RunKey(1, 1), ["a"])
        foreign = StoredOutput(OTHER_JOB, output.run, output.name, output.blobs)
        assert is_refused(lambda: sink.examine(foreign))


def _kinds(found: Sequence[SinkDifference]) -> list[DifferenceKind]:
    """Return what differs, each with a clause for what it is, and a sentence for what to do."""
    for each in found:
        assert each.what.strip()
        assert not each.what.endswith(".")
        assert each.mend.strip().endswith(".")
    return [each.kind for each in found]


def _examined_sink(ground: Any) -> tuple[ExaminedSink, str]:
    """Return the sink, and the staging root of the job."""
    sink = ground.sink
    if not isinstance(sink, ExaminedSink):
        pytest.skip("the sink is no ExaminedSink: nothing shows that doctor is told what lies in it")
    return sink, staging_root(ground, "doctor")
