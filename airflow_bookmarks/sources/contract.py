"""What the package relies on in a kind of source of a user's own, checked before anything of it is stored.

A name, a stat or a watermark of another type than its readers expect would be stored, and make the job unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import COUNT, UNIT, Amount
from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.metadata.known import KNOWN, is_size
from airflow_bookmarks.core.order import ORDERS, Order
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.bound import BOUNDS
from airflow_bookmarks.sources.kind import SourceKind

if TYPE_CHECKING:
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.source import Source

_SHOWN = 80  # characters of a value in a message

# Facts by which the package decides something, or which it adds itself: not for plans of other kinds.
_TAKEN = frozenset(
    {
        "gaps", "greatest", "is_read_whole", "moved_from", "moves", "newest_partition", "on_published", "options",
        "partition_types", "partitions", "quarantined", "starts_from", "starts_over", "upstream", "waiting_bytes",
        "waiting_from_ms", "waiting_oldest_ms", "watermark_before", "watermark_column",
    }
)  # fmt: skip


def check_kind(kind: object) -> None:
    """Make sure that an object can be registered as a kind.

    Raises:
        OptionError: it is none, or its name or its order can't be stored.
    """
    if not isinstance(kind, SourceKind):
        raise OptionError(
            f"{_shown(kind)} is no kind of source. Nothing was registered. Give an object of a subclass of SourceKind, "
            "for example register(KeyKind())."
        )
    name: object = getattr(kind, "name", None)
    if not _is_name(name):
        raise OptionError(
            f"{_shown(name)} can't be the name of the kind {type(kind).__qualname__}: a text is needed that can be "
            f"stored, and {STATE_KIND!r} is taken. Nothing was registered."
        )
    if kind.order is not None and not _is_order(kind.order):
        raise OptionError(
            f"the order {_shown(kind.order)} of the kind {name!r} is none of airflow_bookmarks.core.order "
            f"({', '.join(ORDERS)}), which every process knows. Nothing was registered."
        )


def check_source(source: Any) -> None:
    """Make sure that a source of a user's own names itself as one of its kind.

    Raises:
        OptionError: it does not.
    """
    ref = source.ref()
    if not isinstance(ref, SourceRef) or ref.kind != source.kind or not isinstance(ref.name, str) or not ref.name:
        raise OptionError(
            f"a source of kind {source.kind!r} names itself {_shown(ref)}. Nothing was read or changed. Let its ref() "
            f"return SourceRef({source.kind!r}, <what tells it from other sources>)."
        )


def bounds_of(source: Source[Any]) -> frozenset[str]:
    """Return the names of the bounds that a source of a user's own takes; none where it can't be bounded.

    Raises:
        OptionError: what it says is no set of names of bounds.
    """
    if not hasattr(source, "bounded"):
        return frozenset()
    names: object = getattr(source, "bounds", None)
    if not isinstance(names, (frozenset, set)) or not names <= set(BOUNDS):
        raise OptionError(
            f"a source of kind {source.kind!r} takes the bounds {_shown(names)}. Nothing was read or changed. Let its "
            f"property bounds be a frozenset of names: {', '.join(BOUNDS)}."
        )
    return frozenset(names)


def bounded(source: Any, bound: Bound) -> Source[Any]:
    """Return a source of a user's own that plans no more than a bound; by name and kind it is the same source.

    Raises:
        OptionError: what the source gives is none, or another one, whose position would be none of this source.
    """
    part: Any = source.bounded(bound)
    is_source = all(hasattr(part, name) for name in ("kind", "ref", "plan", "advance", "recheck"))
    if not is_source or part.kind != source.kind or part.ref() != source.ref():
        said = f"{part.kind!r}, {_shown(part.ref())}" if is_source else _shown(part)
        raise OptionError(
            f"bounded() of a source of kind {source.kind!r} returned another source than {source.ref()}: {said}. "
            "Nothing was read or changed. Let it return a source with the same kind and ref()."
        )
    checked: Source[Any] = part
    return checked


def stats_of(plan: Plan) -> dict[str, Any]:
    """Return what is stored of a plan for people: its stats, with its amount.

    Raises:
        MisuseError: one of them is not what its readers rely on. Nothing was stored.
    """
    if isinstance(plan, FilePlan):
        return plan.stats()
    amount = plan.amount
    counts = (amount.count, amount.bytes, amount.rows) if isinstance(amount, Amount) else ("",)
    if not isinstance(amount, Amount) or not _is_unit(amount.unit) or not all(c is None or is_size(c) for c in counts):
        raise _refused(plan, f"its amount is {_shown(amount)}", "Let it be Amount(<unit>, <number or None>)")
    # Unit and count as the amount has them: a second word on it could only differ.
    stats = {name: value for name, value in plan.stats().items() if name not in (UNIT, COUNT)} | amount.stats()
    taken = sorted(_TAKEN & stats.keys())
    if taken:
        raise _refused(plan, f"its stats name {taken[0]!r}, which has a meaning of its own here", "Name it otherwise")
    for name, value in stats.items():
        is_valid, what = KNOWN.get(name, (None, ""))
        if is_valid is not None and not is_valid(value):
            raise _refused(plan, f"the stat {name!r} is {what} ({_shown(value)})", "Mend it, or name it otherwise")
    return stats


def checked_position(kind: SourceKind[Any] | None, position: Position) -> Position:
    """Return a position that can be stored, and read again by every process.

    Raises:
        MisuseError: it can't be.
    """
    name = "" if kind is None else f" of kind {kind.name!r}"
    why = _fault_of(kind, position)
    if why is not None:
        raise MisuseError(
            f"a position{name} can't be stored: {why}. Nothing was committed or changed. Mend advance() or seek() of "
            "its source or kind."
        )
    return position


def _fault_of(kind: SourceKind[Any] | None, position: object) -> str | None:
    if not isinstance(position, Position):
        return f"it is {_shown(position)} and no Position"
    if not isinstance(position.body, bytes):
        return f"its body is of type {type(position.body).__name__}, and bytes are needed"
    if not all(isinstance(data, bytes) for data in position.blobs.values()):
        return "one of its blobs is no bytes"
    if position.watermark is not None and not isinstance(position.watermark, str):
        return f"its watermark is {_shown(position.watermark)}, and text is needed"
    if position.order is not None and not _is_order(position.order):
        return f"its order {_shown(position.order)} is none of airflow_bookmarks.core.order ({', '.join(ORDERS)})"
    order = position.order or (None if kind is None else kind.order)
    if order is not None and position.watermark is not None and order.parse(position.watermark) is None:
        return f"its watermark {_shown(position.watermark)} is not of its order {order.name!r}: {order.description}"
    return None


def _is_order(order: object) -> bool:
    return isinstance(order, Order) and ORDERS.get(order.name) is order


def _is_name(name: object) -> bool:
    """Whether a kind can be stored by that name; any such name may be that of contexts which have to stay readable."""
    if not isinstance(name, str) or name in ("", STATE_KIND):
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_unit(unit: object) -> bool:
    return isinstance(unit, str) and bool(unit) and unit.isprintable()


def _refused(plan: Plan, why: str, remedy: str) -> MisuseError:
    return MisuseError(f"a plan ({type(plan).__name__}) can't be stored: {why}. Nothing was read or changed. {remedy}.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
