"""Tests of a sink that a clean can remove rows from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from airflow_bookmarks.core.errors import CleanRefusedError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.sinks.clean import CleanedSink, CleanGround, CleanList
from airflow_bookmarks.testing.sink_conformance.refusal import is_refused
from airflow_bookmarks.testing.sink_ground import JOB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.sinks.sink import StoredOutput


class CleanedSinkConformance(ABC):
    """Test a sink that a clean can remove rows from. Its ground has `touch` (`CleanedSinkGround`)."""

    @abstractmethod
    def shown_output(self, ground: Any, key: RunKey, rows: Sequence[str]) -> StoredOutput:
        """Make rows visible as a run does, and return the output as it is then stored."""

    def test_output_that_a_clean_can_remove_is_not_refused(self, ground: Any) -> None:
        output = self.shown_output(ground, RunKey(1, 1), ["a"])
        assert cleaned_sink(ground).why_not_clean(output.entry) is None

    def test_clean_removes_what_undone_runs_made_visible_and_no_more(self, ground: Any) -> None:
        cleaned_sink(ground)
        keys = [RunKey(1, 1), RunKey(2, 2), RunKey(3, 3), RunKey(12, 22), RunKey(22, 23)]
        outputs = [self.shown_output(ground, key, [f"{key} first", f"{key} second"]) for key in keys]
        clean(ground, outputs[1], outputs[2])
        kept = [f"{key} {which}" for key in (keys[0], keys[3], keys[4]) for which in ("first", "second")]
        assert sorted(ground.visible()) == sorted(kept)

    def test_clean_can_be_repeated(self, ground: Any) -> None:
        cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a"])
        listed = _listed(ground, undone)
        _carry_out(ground, listed, undone)
        self.shown_output(ground, RunKey(2, 2), ["b"])
        for _ in range(2):
            _carry_out(ground, listed, undone)
            assert list(ground.visible()) == ["b"]

    def test_clean_removes_nothing_while_it_is_prepared_nor_of_living_runs(self, ground: Any) -> None:
        sink = cleaned_sink(ground)
        output = self.shown_output(ground, RunKey(1, 1), ["a"])
        listed = _listed(ground, output)
        sink.prepare_clean(clean_ground(ground, output), listed)
        assert list(ground.visible()) == ["a"]
        assert is_refused(lambda: sink.prepare_clean(clean_ground(ground), listed))
        assert list(ground.visible()) == ["a"]

    def test_clean_leaves_what_somebody_else_touched_since_it_was_listed(self, ground: Any) -> None:
        cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a", "b"])
        listed = _listed(ground, undone)
        touched = ground.touch("a")
        _carry_out(ground, listed, undone)
        assert list(ground.visible()) == [touched]

    def test_clean_leaves_what_somebody_else_touched_before_or_is_refused(self, ground: Any) -> None:
        cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a", "b"])
        touched = ground.touch("a")
        with suppress(CleanRefusedError):
            clean(ground, undone)
        assert touched in ground.visible()

    def test_what_an_undone_run_has_left_is_what_a_later_clean_removes(self, ground: Any) -> None:
        sink = cleaned_sink(ground)
        undone = self.shown_output(ground, RunKey(1, 1), ["a", "b"])
        touched = ground.touch("b")
        left = sink.left(undone)
        if left is None:
            pytest.skip("left() knows nothing: nothing shows that a clean takes what an earlier change has left")
        _carry_out(ground, left, undone)
        assert list(ground.visible()) == [touched]
        again = sink.left(undone)
        assert again is None or not again.by_sink()


def cleaned_sink(ground: Any) -> CleanedSink:
    if not isinstance(ground.sink, CleanedSink):
        pytest.skip(
            "the sink is no CleanedSink: nothing shows that a clean removes what undone runs wrote, and no more"
        )
    return ground.sink


def clean_ground(ground: Any, *undone: StoredOutput) -> CleanGround:
    runs = {(output.run.key.number, fence): output.run for output in undone for fence in output.run.fences}
    return CleanGround(
        JOB, ground.blobs, lambda first, last: {key: run for key, run in runs.items() if first <= key[0] <= last}
    )


def _listed(ground: Any, *undone: StoredOutput) -> CleanList:
    """Return what a clean of undone outputs removes, as the process that carries it out reads it."""
    listed = CleanList.joined(cleaned_sink(ground).list_clean(output, ()) for output in undone)
    return CleanList.decode(listed.encode())


def _carry_out(ground: Any, listed: CleanList, *undone: StoredOutput) -> None:
    for kind, part in listed.by_sink().items():
        assert kind == ground.sink.kind, f"the sink lists what is to be removed from another kind, {kind!r}"
        removals = cleaned_sink(ground).prepare_clean(clean_ground(ground, *undone), part)
        for removal in removals:
            removal.remove_staged()
        for removal in removals:
            removal.remove_visible()


def clean(ground: Any, *undone: StoredOutput) -> None:
    _carry_out(ground, _listed(ground, *undone), *undone)
