"""Tests of a sink that commits by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.testing.sink_conformance.cleaned import CleanedSinkConformance
from airflow_bookmarks.testing.sink_ground import JOB, NAME, stored_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.sinks.sink import StoredOutput
    from airflow_bookmarks.testing.sink_ground import CommittingSinkGround


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
        key = RunKey(1, fences[-1])
        entry = ground.sink.place(JOB, key, NAME, ground.request)
        return stored_output(entry, key, ground.blobs, fences)

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

    def test_rows_that_another_run_writes_again_are_there_once_if_the_sink_says_so(
        self, ground: CommittingSinkGround
    ) -> None:
        for number in (1, 2):
            output = self.shown_output(ground, RunKey(number, number), ["a"])
        assert set(ground.visible()) == {"a"}
        assert list(ground.visible()) == ["a"] or not ground.sink.holds_rows_once(output.entry)

    def test_refusal_of_a_clean_says_why(self, ground: CommittingSinkGround) -> None:
        why = ground.sink.why_not_clean(self.stored_output(ground, (3,)).entry)
        assert why is None or why.strip()
