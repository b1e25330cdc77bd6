"""Where the contexts of a loop of side runs stand: each run hands what it has read to the next in memory only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.lifecycle.run.checks.going_on import check_moves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.ledger.segment import Segment
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.lifecycle.run.use.inputs import RunInputs
    from airflow_bookmarks.sources.source import PlanInput


class BatchWalk:
    """Where the contexts of a loop of side runs stand: positions that are never stored, with what they refer to."""

    def __init__(self) -> None:
        self._found: dict[str, PlanInput] = {}
        self._blobs: dict[str, bytes] = {}

    def found(self, ctx: str) -> PlanInput | None:
        """Return from where the next run of the loop plans a context; None where no run has moved it yet."""
        return self._found.get(ctx)

    def move(self, ctx: str, before: PlanInput, position: Position) -> None:
        """Let the next run of the loop go on from `position`, the result of a plan from `before`."""
        self._blobs |= position.blobs
        load = before.load if ctx in self._found else self._with_own(before.load)
        self._found[ctx] = replace(before, position=position.body, load=load, watermark=position.watermark)

    def _with_own(self, stored: Load) -> Load:
        def load(names: Sequence[str]) -> Mapping[str, bytes | Segment]:
            missing = [name for name in names if name not in self._blobs]
            own = {name: self._blobs[name] for name in names if name in self._blobs}
            return {**own, **(stored(missing) if missing else {})}

        return load


def positions_after(job: str, inputs: RunInputs, plans: Mapping[str, Plan], done: str) -> dict[str, Position]:
    """Return where the next run of a loop reads on, without the contexts that stay; `done` is for the error.

    Raises:
        MisuseError: it would read the same again.
    """
    positions: dict[str, Position] = {}
    for ctx, plan in plans.items():
        found, position = inputs[ctx].found, inputs[ctx].advance(plan)
        check_moves(job, ctx, found, plan, position, done)
        if position is not None:
            positions[ctx] = position
    return positions
