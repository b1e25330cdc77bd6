"""The registry of the kinds of source. A new kind is an object here, a planner, and a reader under `spark/readers`.

A kind of a user's own is added by `register`, or by an entry point of an installed package, and read by
`job.read(ctx).source(source, reader)`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Generic, cast

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.own_kind import errors_of, load_kind
from airflow_bookmarks.sources.contract import check_kind, checked_passed_over, checked_position, encoded
from airflow_bookmarks.sources.delta.kind import DeltaKind
from airflow_bookmarks.sources.files.kind import FileKind
from airflow_bookmarks.sources.iceberg.kind import IcebergKind
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.snapshot.kind import SnapshotKind
from airflow_bookmarks.sources.source import P
from airflow_bookmarks.sources.upstream.kind import UpstreamKind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import ContextState, PlanEntry
    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.sources.passed_over import PassedOver
    from airflow_bookmarks.sources.source import PlanInput, Recheck, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

GROUP = "airflow_bookmarks.sources"  # of entry points: the name of a kind, and the class that it is made of

# The records of pause and disable runs do not name the kind of a plan: one without a unit is of files.
UNNAMED = FileKind.name

KINDS: dict[str, SourceKind[Any]] = {
    FileKind.name: FileKind(),
    TableKind.name: TableKind(),
    SnapshotKind.name: SnapshotKind(),
    DeltaKind.name: DeltaKind(),
    IcebergKind.name: IcebergKind(),
    UpstreamKind.name: UpstreamKind(),
}


def register(kind: SourceKind[Any]) -> None:
    """Make a kind of your own known to this process; a second call with the same kind has no effect.

    Call it in the script before the job begins. A kind that an installed package names by an entry point of the group
    `airflow_bookmarks.sources` needs no call. A process that does not know a kind (an Airflow worker, the page, the
    command line) shows its contexts with what is stored of them, and refuses what it would need the kind for.

    Raises:
        OptionError: another kind has that name; or it is no object of a kind, or has a name that can't be stored.
    """
    check_kind(kind)
    known = KINDS.setdefault(kind.name, kind)
    if type(known) is not type(kind):
        raise OptionError(
            f"the name {kind.name!r} of the kind {type(kind).__qualname__} is that of {type(known).__qualname__} "
            "already. Nothing was registered. The name is stored with each context: choose another one."
        )


@contextmanager
def registered(kind: SourceKind[Any]) -> Iterator[None]:
    """Make a kind known within the block, as a test needs it; one that was known before stays known after it.

    Raises:
        OptionError: another kind has that name.
    """
    is_new = kind.name not in KINDS
    register(kind)
    try:
        yield
    finally:
        if is_new:
            del KINDS[kind.name]


_OURS = frozenset(KINDS)


def is_ours(name: str) -> bool:
    """Whether a kind is one of this package."""
    return name in _OURS


def own_errors(name: str) -> AbstractContextManager[None]:
    """Raise a `SourceError` for whatever a kind of a user's own raises within the block; see `errors_of`."""
    return errors_of(name, _OURS, "kind")


def find_kind(name: str) -> SourceKind[Any] | None:
    """Return the kind of that name; None where this process does not know it, for the reason of `why_unknown`.

    Of installed packages, the entry point of that name is loaded when it is first asked for.
    """
    kind = KINDS.get(name) or _installed(name)[0]
    return kind if kind is None or is_ours(name) else _guarded(kind)


def why_unknown(name: str) -> str:
    """Say why a kind is not known here, to stand behind the error that it is not; empty if no package names it."""
    why = None if name in KINDS else _installed(name)[1]
    return "" if why is None else f" {why}"


@cache
def _installed(name: str) -> tuple[SourceKind[Any] | None, str | None]:
    """Return the kind that an installed package names, and why it can't be had; both None where none names it."""
    return load_kind(GROUP, name, _named)


def _named(made: object) -> dict[str, SourceKind[Any]]:
    if isinstance(made, SourceKind):
        check_kind(made)
    return {made.name: made} if isinstance(made, SourceKind) else {}


def kind_of(name: str) -> SourceKind[Any]:
    """Return the kind of that name, to read what is stored of it.

    Raises:
        StateCorruptError: this version does not know the kind.
    """
    kind = find_kind(name)
    if kind is None:
        raise StateCorruptError(
            f"what is stored is of the kind of source {name!r}, which is not known here ({_known_kinds()} are). "
            f"Nothing was read or changed.{why_unknown(name) or _HOW_KNOWN}"
        )
    return kind


_HOW_KNOWN = (
    " Install the package that brings it, with an entry point of the group airflow_bookmarks.sources, or register it; "
    "or upgrade, if a later version of this package brings it."
)


def _known_kinds() -> str:
    return ", ".join(map(repr, sorted(KINDS)))


class _OwnKind:
    """A kind of a user's own: whatever its methods raise beside errors of this package is a `SourceError`."""

    def __init__(self, kind: SourceKind[Any]) -> None:
        self._kind = kind

    @property  # type: ignore[misc]  # to isinstance it is what it stands for
    def __class__(self) -> type:
        return type(self._kind)

    def stands_for(self, kind: SourceKind[Any]) -> bool:
        return self._kind is kind

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._kind, name)
        if not callable(member):
            return member

        @wraps(member)
        def called(*args: Any, **kwargs: Any) -> Any:
            with own_errors(self._kind.name):
                return member(*args, **kwargs)

        return called


_GUARDED: dict[str, _OwnKind] = {}


def _guarded(kind: SourceKind[Any]) -> SourceKind[Any]:
    """Return what stands for a kind of a user's own; the same as long as that is the kind of its name."""
    known = _GUARDED.get(kind.name)
    if known is None or not known.stands_for(kind):
        known = _GUARDED[kind.name] = _OwnKind(kind)
    return cast("SourceKind[Any]", known)


def upstream_of(state: ContextState | PlanEntry) -> str | None:
    """Return the job that a context reads; None if it reads no job, or its kind is not known."""
    kind = find_kind(state.kind)
    return None if kind is None else kind.upstream_of(state.source)


def upstream_in(text: str) -> str | None:
    """Return the job that the source with this text reads; None if it reads no job, or it is no text of a source."""
    source = SourceRef.parse(text)
    kind = None if source is None else find_kind(source.kind)
    return None if source is None or kind is None else kind.upstream_of(source)


def has_ledger(name: str) -> bool:
    """Whether the positions of a kind know each file by name and version."""
    kind = find_kind(name)
    return kind is not None and kind.has_ledger


def reads_jobs(name: str) -> bool:
    """Whether the sources of a kind are jobs."""
    kind = find_kind(name)
    return kind is not None and kind.reads_jobs


def files_in(name: str, body: bytes) -> Listing | None:
    """Return the files that a stored plan of a kind reads; None if it reads none, or the kind is not known.

    Raises:
        StateCorruptError: it is no plan of this kind.
    """
    kind = find_kind(name)
    return None if kind is None else kind.files_of(kind.decode(body))


def encoded_plan(name: str, plan: Any) -> bytes:
    """Return a plan as it is stored; for a kind of a user's own, that the kind can read it again is tried first.

    Raises:
        MisuseError: it can't be read again. Nothing was stored.
    """
    return plan.encode() if is_ours(name) else encoded(find_kind(name), plan)


def recorded_source(store: BookmarkStore, job: str, entry: PlanEntry) -> Source[Any]:
    """Return the source that a run of `job` planned from, according to its plan, to plan it again without the script.

    Whatever a source of a user's own kind raises is a `SourceError`, or another error of this package.

    Raises:
        OptionError: contexts of this kind can't be looked at without it, or not from here.
        SourceError: a kind of a user's own failed.
    """
    kind = find_kind(entry.kind)
    if kind is None:
        raise OptionError(
            f"a context of kind {entry.kind!r} can't be looked at without its script; {_known_kinds()} can. "
            f"Nothing was read or changed.{why_unknown(entry.kind)}"
        )
    with own_errors(entry.kind):
        source = kind.source_of(store, job, entry)
    return source if entry.kind in _OURS else _OwnSource(entry.kind, source)


class _OwnSource(Generic[P]):
    """A source of a user's own kind, which was made without its script: what it raises is said to be of its kind."""

    def __init__(self, name: str, source: Source[P]) -> None:
        self._name, self._source = name, source

    @property
    def kind(self) -> str:
        return self._name

    @property
    def format(self) -> str | None:
        with own_errors(self._name):
            return self._source.format

    def ref(self) -> SourceRef:
        with own_errors(self._name):
            return self._source.ref()

    def plan(self, found: PlanInput) -> P:
        with own_errors(self._name):
            return self._source.plan(found)

    def advance(self, plan: P) -> Position | None:
        with own_errors(self._name):
            return self._source.advance(plan)

    def recheck(self, plan: P) -> Recheck:
        with own_errors(self._name):
            return self._source.recheck(plan)


def only_script_knows(entry: PlanEntry, source: Source[Any]) -> str | None:
    """Say why what is new in a recorded source can't be known without its script, as its kind says; None where it can.

    Args:
        entry: how the context was planned last; its kind is known here.
        source: what `recorded_source` returned for it.
    """
    return kind_of(entry.kind).only_script_knows(source)


def passed_over(
    store: BookmarkStore, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput
) -> PassedOver | None:
    """Return how much a context passes over from one position to another, as its kind counts it; None: it can't tell.

    Args:
        entry: how the context was planned last; its kind is known here.

    Raises:
        OptionError, SourceError, DatabaseError: it can't be counted, for the reason in the message.
    """
    kind = kind_of(entry.kind)
    return checked_passed_over(kind, kind.passed_over(store, job, entry, before, after))


def position_at(name: str, store: BookmarkStore, found: PlanInput, plan: Any, value: str) -> Position:
    """Return the position that a value names, in the words of its kind: "now", a time, an upstream run.

    Raises:
        OptionError: the value does not fit the kind, or contexts of this kind can't be set.
    """
    kind = find_kind(name)
    if kind is None:
        raise OptionError(
            f"a context of kind {name!r} can't be set to a value here; {_known_kinds()} can. Nothing was read or "
            f"changed.{why_unknown(name) or _HOW_KNOWN}"
        )
    with own_errors(name):
        position = kind.seek(store, found, plan, value)
    return with_order(name, position)


def with_order(name: str, position: Position) -> Position:
    """Return a position of a kind that says how its watermark compares: as all of the kind do, if not as it says.

    Raises:
        MisuseError: it can't be stored; nothing was.
    """
    kind = find_kind(name)
    position = checked_position(kind, position)
    return position if kind is None or position.order is not None else replace(position, order=kind.order)
