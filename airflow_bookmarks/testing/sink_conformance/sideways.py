"""Tests of a sink that pause and disable runs write to, and of one in which `gc` finds what they left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.sinks.sink import CollectedSink, PublishSteps, SideOutput, SidewaysSink
from airflow_bookmarks.sinks.staging import Staged
from airflow_bookmarks.testing.sink_conformance.refusal import is_refused
from airflow_bookmarks.testing.sink_ground import JOB, NAME, OTHER_JOB, Publisher, staging_root, stored_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.testing.sink_ground import SidewaysSinkGround, StagedSinkGround

_SIDE_RUN, _SIDE_RUN_2 = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW"  # as the store makes ids


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
        assert is_refused(lambda: sink.prepare_aside(output))
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
        assert is_refused(lambda: sink.left_aside(OTHER_JOB, root))
        assert is_refused(lambda: sink.remove_aside(OTHER_JOB, root, _SIDE_RUN))
        assert ground.staged_aside() == {_SIDE_RUN}


def _sideways_sink(ground: StagedSinkGround) -> SidewaysSink:
    if not isinstance(ground.sink, SidewaysSink):
        pytest.skip("the sink is no SidewaysSink: nothing shows that it takes what pause and disable runs write")
    return ground.sink


def _collected_sink(ground: SidewaysSinkGround) -> tuple[CollectedSink, str]:
    """Return the sink, and the staging root of the job."""
    sink = ground.sink
    if not isinstance(sink, CollectedSink):
        pytest.skip("the sink is no CollectedSink: nothing shows that gc removes what killed side runs have left")
    return sink, staging_root(ground, "gc")


def _publish_aside(ground: SidewaysSinkGround, output: SideOutput) -> None:
    _sideways_sink(ground).prepare_aside(output).publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
