"""The interface of a kind of source to code that has only stored bytes: no script, no Spark.

A kind is one object in `airflow_bookmarks.sources.registry`. It decodes the plans that its source has stored, says
where they lead, and builds the source again from what a run has recorded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, Literal

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.sources.source import P, PlanInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from airflow_bookmarks.core.advice.tables import KeyedRead
    from airflow_bookmarks.core.ledger.file_ledger import Ledger, Load
    from airflow_bookmarks.core.order import Order
    from airflow_bookmarks.core.plan import PlanPart
    from airflow_bookmarks.core.position import Position, UpstreamPosition
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.sources.passed_over import PassedOver
    from airflow_bookmarks.sources.source import Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


SetBy = Literal["time", "run", "text"]


class SourceKind(ABC, Generic[P]):
    """One kind of source, with plans of type `P`. What a kind can't do, it refuses: nothing is guessed for it.

    `name` is stored with each context and each plan, and never changes.
    """

    name: ClassVar[str]
    has_ledger: ClassVar[bool] = False  # whether its position knows each file by name and version
    reads_jobs: ClassVar[bool] = False  # whether its sources are jobs
    has_files: ClassVar[bool] = False  # whether what its plans read is files
    order: ClassVar[Order | None] = None  # how its watermarks compare; None: its positions say it, or their looks
    is_totally_ordered: ClassVar[bool] = False  # whether a position has read all that one of a lower watermark has
    keeps_elsewhere: ClassVar[bool] = False  # whether a position tells something of another source of this kind

    @abstractmethod
    def decode(self, body: bytes) -> P:
        """Return a stored plan.

        Raises:
            StateCorruptError: it is not a plan of this kind, or of a newer format.
        """

    @abstractmethod
    def advance(self, plan: P, found: PlanInput) -> Position | None:
        """Return the position after a stored plan that started from `found`; None if it does not move.

        Recovery asks it, which has no source.
        """

    @abstractmethod
    def knows(self, found: PlanInput, plan: P) -> bool:
        """Whether the position in `found` counts as read something that a stored plan reads.

        What a plan reads again for the sake of something else does not count.
        """

    @abstractmethod
    def union(self, plans: Sequence[P]) -> P:
        """Return one plan that reads what some stored plans read, oldest first: the window of a pause run.

        Of none it is an empty plan.
        """

    def unlearned(self, found: PlanInput, plan: P) -> Position | None:
        """Return the position in `found` without what it knows of what a stored plan reads, so that it is read again.

        A change asks for it where an undone run has replaced what runs that stay had made of it. None, the default: the
        position stays as it is.
        """
        return None

    def why_not_again(self, plan: P) -> str | None:
        """Return why a stored plan can't be read a second time, by a replay or a pause over runs; None if it can."""
        return None

    def begin(self, store: BookmarkStore, source: SourceRef, start: Start) -> PlanInput:
        """Return what a context of a job without a bookmark is planned from, so that it begins at `start`.

        By default the source gets the start, and leaves out what lies before it.
        """
        return PlanInput(start=start)

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> Source[P]:
        """Return the source that a run of `job` planned from, according to its plan, so that it can be planned without
        the script.

        Raises:
            OptionError: it can't be looked at without the script, or not from here.
        """
        raise OptionError(
            f"a context of kind {self.name!r} can't be looked at without its script. Nothing was read or changed."
        )

    def only_script_knows(self, source: Source[P]) -> str | None:
        """Say why what is new in a recorded source can't be known without its script; by default None: it can.

        A look without the script then gives this as the reason why it is not known, and a task starts Spark.

        Example:
            FileKind().only_script_knows(source)    # of partitions that a catalog listed: new ones are its to tell
        """
        return None

    def upstream_of(self, source: SourceRef) -> str | None:
        """Return the job that a source of this kind reads; None if it reads no job."""
        return None

    def roots_of(self, source: SourceRef) -> Sequence[str] | None:
        """Return what may be a folder, file or pattern that a source reads by its name; None where that says none."""
        return None

    def consumed(self, position: bytes) -> UpstreamPosition | None:
        """Return up to which run of a job a stored position has read; None if it is not about a job.

        Raises:
            StateCorruptError: it can't be read.
        """
        return None

    def part_of(self, plan: P) -> PlanPart | None:
        """Return the part of its source that a plan reads by itself; None: it reads what is new in all of it."""
        return None

    def parts_left(self, position: bytes, execution: str) -> Sequence[PlanPart]:
        """Return the parts that an execution has found, and that a stored position counts as not read.

        Raises:
            StateCorruptError: it can't be read.
        """
        return ()

    def ledger(self, position: bytes, load: Load) -> Ledger | None:
        """Return the files that a stored position knows; None if it knows none by name.

        Args:
            load: fetches segments of a ledger by content hash.

        Raises:
            StateCorruptError: it can't be read.
        """
        return None

    def watermark(self, position: bytes, load: Load) -> str | None:
        """Return the watermark that a stored position itself contains; None if it has none.

        Raises:
            StateCorruptError: it can't be read.
        """
        return None

    def reached(self, stats: Mapping[str, Any]) -> str | None:
        """Return for people how far a plan has read, by what its `stats` returned; None: that does not tell."""
        return None

    def locations(self, plan: P, source: SourceRef) -> Sequence[str]:
        """Return where a plan reads, for catalogs: URIs, or paths."""
        return ()

    def keyed(self, plan: P) -> KeyedRead | None:
        """Return by which keys a plan reads rows, for who judges these; None: it reads none by key."""
        return None

    def files_of(self, plan: P) -> Listing | None:
        """Return the files that a plan reads; None where what it reads is no files."""
        return None

    def page(self, body: bytes, offset: int, limit: int) -> tuple[int, Listing] | None:
        """Return how many files a stored plan has, and some of them; None where what it reads is no files.

        Raises:
            StateCorruptError: it is no plan of this kind.
        """
        return None

    @property
    def set_by(self) -> SetBy | None:
        """What a person names to set a position: "time" or "run" (both also "now"), or a text; None: it can't be set.

        By default a text, which only this kind reads, if the kind has `seek`.
        """
        return None if type(self).seek is SourceKind.seek else "text"

    def seek(self, store: BookmarkStore, found: PlanInput, plan: P, value: str) -> Position:
        """Return the position that a value names, in the words of this kind: "now", a time, an upstream run.

        Args:
            found: the present position.
            plan: the plan that led to it.

        Raises:
            OptionError: the value does not fit, or contexts of this kind can't be set.
        """
        raise OptionError(f"a context of kind {self.name!r} can't be set to a value. Nothing was changed.")

    def passed_over(
        self, store: BookmarkStore, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput
    ) -> PassedOver | None:
        """Return how much input counts as read at `after`, and was not read at `before`: what a `set` skips for good.

        It is asked for the preview of a `set`, so it may look at the source, and changes nothing. By default None: this
        kind can't tell, and the preview says so.

        Args:
            store: the state store, which fetches what `entry` names.
            job: the name of the job.
            entry: how the context was planned last, as for `source_of`.
            before: the present position.
            after: the position that `seek` returned, in the same form. Nothing of it is stored so far.

        Raises:
            OptionError, SourceError, DatabaseError: it can't be counted; the preview says why, in the words of the
                error.

        Example:
            passed = kind.passed_over(store, "people.copy", entry, before, after)
            how_many = None if passed is None else passed.amount.in_words()
        """
        return None
