"""What a run knows of the contexts that it reads: what was planned, how the reads went, what becomes of the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import MisuseError

if TYPE_CHECKING:
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Greatest, Position
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
    from airflow_bookmarks.lifecycle.state.verification import OnMissing
    from airflow_bookmarks.sources.source import PlanInput, Source


@dataclass(slots=True)
class PlannedContext:
    """One context that a run has planned, and what was learnt of it since.

    `failure` is why it could not be read; `rows` (None: not known), `schema` with its `schema_change`, and the
    `greatest` value of the column of its watermark are those of the read.
    """

    source: Source[Any]
    found: PlanInput
    plan: Any
    on_missing: OnMissing = "error"
    schema: str | None = None
    schema_change: Mapping[str, Any] | None = None
    failure: str | None = None
    rows: int | None = None
    greatest: Greatest | None = None
    _advanced: tuple[Any, Position | None] | None = field(default=None, init=False, repr=False)

    def advance(self, plan: Any) -> Position | None:
        """Return where its source leads after `plan`; asked once for a plan, because a source may count what is read.

        Where rows land before the commit, it has to be known before.
        """
        if self._advanced is None or self._advanced[0] is not plan:
            self._advanced = plan, self.source.advance(plan)
        return self._advanced[1]


class RunInputs(Mapping[str, PlannedContext]):
    """The contexts of one run by name, in the order in which they were planned; without a store or a lock.

    `disposals` say what becomes of the files of a context once the run is published (set before it is planned), `kept`
    why they stay after all. `left_out` counts by step of the script, and then by reason, what a step left out.
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self._contexts: dict[str, PlannedContext] = {}
        self.disposals: dict[str, Disposal] = {}
        self.kept: dict[str, str] = {}
        self.left_out: dict[str, dict[str, int]] = {}

    def __getitem__(self, ctx: str) -> PlannedContext:
        return self._contexts[ctx]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contexts)

    def __len__(self) -> int:
        return len(self._contexts)

    @property
    def has_input(self) -> bool:
        """Whether a context that was planned so far has anything to read."""
        return any(not context.plan.is_empty for context in self._contexts.values())

    @property
    def plans(self) -> dict[str, Plan]:
        """The plan of each context."""
        return {ctx: context.plan for ctx, context in self._contexts.items()}

    @property
    def sources(self) -> dict[str, Source[Any]]:
        """The source of each context."""
        return {ctx: context.source for ctx, context in self._contexts.items()}

    def check_new(self, ctx: str) -> None:
        """Make sure that a context is read once.

        Raises:
            MisuseError: it was planned before.
        """
        if ctx in self._contexts:
            raise MisuseError(
                f"job {self._job!r}: context {ctx!r} is read twice in one run. Nothing was read by the second read, "
                "nothing was committed. Give each source a name of its own."
            )

    def dispose(self, ctx: str, disposal: Disposal) -> None:
        """Set what becomes of the files of a context that is to be planned.

        Raises:
            MisuseError: it was planned before, and keeps what was set for that plan.
        """
        self.check_new(ctx)
        self.disposals[ctx] = disposal

    @contextmanager
    def planning(self, ctx: str) -> Iterator[None]:
        """Forget what becomes of the files of a context if the block makes no plan: the next read sets it anew."""
        try:
            yield
        except BaseException:  # whatever ends the block, an interrupt too: there is no plan
            if ctx not in self._contexts:
                self.disposals.pop(ctx, None)
            raise

    def leave_out(self, step: str, reason: str, number: int) -> None:
        """Add to the count of what a step of the script left out of what was read."""
        counts = self.left_out.setdefault(step, {})
        counts[reason] = counts.get(reason, 0) + number

    def add(self, ctx: str, planned: PlannedContext) -> None:
        """Take a context that is planned now."""
        self._contexts[ctx] = planned

    def check_read(self, done: str) -> None:
        """Make sure that each planned context was read; `done` is what else the run would be: "committed".

        Raises:
            MisuseError: one was not, also where the script caught its error.
        """
        failed = {ctx: context.failure for ctx, context in self._contexts.items() if context.failure is not None}
        if failed:
            told = "; ".join(f"{ctx!r} was planned and not read: {error}" for ctx, error in failed.items())
            raise MisuseError(
                f"job {self._job!r}: {told}. "
                f"Nothing was {done}: what was planned would count as read. Let the error end the run, and mend it."
            )
