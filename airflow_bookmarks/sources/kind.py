"""What a kind of source is to everything that has only its stored bytes: no script, no Spark.

A kind is one object in `airflow_bookmarks.sources.registry`. It reads back the plans that its source has stored, says
where they lead, and builds the source again from what a run has recorded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader

P = TypeVar("P")


class Kind(ABC, Generic[P]):
    """One kind of source, with plans of type `P`. What a kind can't do, it refuses: nothing is guessed for it.

    `name` is stored with each context and each plan, and never changes.
    """

    name: ClassVar[str]

    @abstractmethod
    def decode(self, body: bytes) -> P:
        """Return a stored plan.

        Raises:
            StateCorruptError: it is not a plan of this kind, or of a newer format.
        """

    @abstractmethod
    def advance(self, plan: P, found: PlanInput) -> Position | None:
        """Return the position after a stored plan that started from `found`; None where it does not move.

        Recovery asks it, which has no source.
        """

    @abstractmethod
    def union(self, plans: Sequence[P]) -> P:
        """Return one plan that reads what some stored plans read, oldest first: the window of a pause run.

        Of none it is an empty plan.
        """

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
        """Return the source that a run of `job` planned from, as its plan has it: to look at it without the script.

        Raises:
            OptionError: it can't be looked at without the script, or not from here.
        """
        raise OptionError(
            f"a context of kind {self.name!r} can't be looked at without its script. Nothing was read or changed."
        )

    def seek(self, store: StateReader, found: PlanInput, plan: P, value: str) -> Position:
        """Return the position that a value names, in the words of this kind: "now", a time, an upstream run.

        Args:
            found: the present position.
            plan: the plan that led to it.

        Raises:
            OptionError: the value does not fit, or contexts of this kind can't be set.
        """
        raise OptionError(f"a context of kind {self.name!r} can't be set to a value. Nothing was changed.")
