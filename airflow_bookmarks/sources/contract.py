"""What the package relies on in a kind of source of a user's own, checked before anything of it is stored.

A name, a stat or a watermark of another type than its readers expect would be stored, and make the job unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import COUNT, UNIT, Amount, is_as_much
from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceError, StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.metadata.known import KNOWN, is_size
from airflow_bookmarks.core.order import ORDERS, Order
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.bound import BOUNDS
from airflow_bookmarks.core.text.redaction import has_user_info, redacted
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.passed_over import PassedOver
from airflow_bookmarks.sources.source import Recheck

if TYPE_CHECKING:
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.source import Source

_SHOWN = 80  # characters of a value in a message
_TOO_LONG = 10**38  # DynamoDB keeps 38 digits of a number
_OF_A_PLAN = ("is_empty", "has_more", "edge", "amount", "skipped", "read_again", "stats", "summary", "encode")

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
        OptionError: it does not, or its name, which is stored and shown, has a secret in it.
    """
    ref = source.ref()
    if not isinstance(ref, SourceRef) or ref.kind != source.kind or not isinstance(ref.name, str) or not ref.name:
        raise OptionError(
            f"a source of kind {source.kind!r} names itself {_shown(ref)}. Nothing was read or changed. Let its ref() "
            f"return SourceRef({source.kind!r}, <what tells it from other sources>)."
        )
    if has_user_info(ref.name) or redacted(ref.name) != ref.name:
        raise OptionError(
            f"a source of kind {source.kind!r} has a secret in its name: {redacted(ref.name)}. That name is stored "
            "with the job, and shown. Nothing was read or changed. Let its ref() leave out the user and what is secret."
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
    lacks = [name for name in _OF_A_PLAN if not hasattr(plan, name)]
    if lacks:
        raise MisuseError(
            f"{_shown(plan)} is not a plan: it has no {', '.join(lacks)}. Nothing was read or changed. Let plan() of "
            "the source return an object of the protocol airflow_bookmarks.core.plan.Plan."
        )
    amount = plan.amount
    if not _is_amount(amount):
        raise _refused(plan, f"its amount is {_shown(amount)}", "Let it be Amount(<unit>, <number or None>)")
    # Unit and count as the amount has them: a second word on it could only differ.
    told: object = plan.stats()
    if not isinstance(told, Mapping) or not all(isinstance(name, str) for name in told):
        raise _refused(plan, f"its stats are {_shown(told)}", "Let stats() return a mapping of names to values")
    stats = {name: value for name, value in told.items() if name not in (UNIT, COUNT)} | amount.stats()
    unfit = next((name for name, value in stats.items() if not _may_be_stored(value)), None)
    if unfit is not None:
        raise _refused(
            plan,
            f"the stat {unfit!r} ({_shown(stats[unfit])}) is of a type that can't be stored",
            "Text, booleans, integers of at most 38 digits, None, and lists and mappings of these can; a float as text",
        )
    taken = sorted(_TAKEN & stats.keys())
    if taken:
        raise _refused(plan, f"its stats name {taken[0]!r}, which has a meaning of its own here", "Name it otherwise")
    for name, value in stats.items():
        is_valid, what = KNOWN.get(name, (None, ""))
        if is_valid is not None and not is_valid(value):
            raise _refused(plan, f"the stat {name!r} is {what} ({_shown(value)})", "Mend it, or name it otherwise")
    return stats


def encoded(kind: SourceKind[Any] | None, plan: Plan) -> bytes:
    """Return the bytes of a plan of a user's own kind, if its kind reads them as the same amount.

    A plan that can't be read any more could be neither replayed nor taken over.

    Raises:
        MisuseError: they are not bytes, or the kind reads another plan from them. Nothing was stored.
    """
    body: object = plan.encode()
    if not isinstance(body, bytes):
        raise _refused(plan, f"encode() returned {_shown(body)}", "Let it return bytes")
    if kind is None:  # this process can't read it: whoever needs it brings the kind
        return body
    try:
        read = kind.decode(body)
    except (SourceError, StateCorruptError) as error:
        why = f"its kind can't read what encode() returned: {error}"
        raise _refused(plan, why, "Mend encode() or decode()") from error
    if not is_as_much(getattr(read, "amount", None), plan.amount):
        why = f"its kind reads {_shown(getattr(read, 'amount', read))} from what encode() returned of {plan.amount}"
        raise _refused(plan, why, "Mend encode() or decode()")
    return body


def checked_recheck(kind: str, recheck: object) -> Recheck:
    """Return what `recheck` of a source has found, if it is that.

    Raises:
        MisuseError: it is something else. Nothing was committed.
    """
    if isinstance(recheck, Recheck) and isinstance(recheck.missing, tuple):
        return recheck
    raise MisuseError(
        f"recheck() of a source of kind {kind!r} returned {_shown(recheck)}, and not a Recheck (with a tuple of texts "
        "as missing). Nothing was committed or changed. Mend it."
    )


def checked_passed_over(kind: SourceKind[Any], passed: object) -> PassedOver | None:
    """Return what a kind says that a set passes over, if it is that.

    Raises:
        SourceError: it is something else.
    """
    if passed is None or (isinstance(passed, PassedOver) and _is_amount(passed.amount) and _are_commits(passed)):
        return passed
    raise SourceError(
        f"passed_over() of the kind {kind.name!r} returned {_shown(passed)}, and not None or a PassedOver with an "
        "amount. Nothing was changed. Mend it."
    )


def _are_commits(passed: PassedOver) -> bool:
    return passed.commits is None or _is_amount(passed.commits)


def _is_amount(amount: object) -> bool:
    if not isinstance(amount, Amount) or not _is_unit(amount.unit):
        return False
    return all(count is None or is_size(count) for count in (amount.count, amount.bytes, amount.rows))


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
        return f"it is {_shown(position)}, not a Position"
    if not isinstance(position.body, bytes):
        return f"its body is of type {type(position.body).__name__}, and bytes are needed"
    if not all(isinstance(data, bytes) for data in position.blobs.values()):
        return "one of its blobs is not bytes"
    if position.watermark is not None and not isinstance(position.watermark, str):
        return f"its watermark is {_shown(position.watermark)}, and text is needed"
    if position.set_aside is not None and not (is_size(position.set_aside) and position.set_aside < _TOO_LONG):
        return f"its set_aside is {_shown(position.set_aside)}, and a count is needed"
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
    return isinstance(name, str) and name not in ("", STATE_KIND) and _is_text(name)


def _may_be_stored(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and _may_be_stored(each) for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_may_be_stored, value))
    if isinstance(value, str):
        return value.isprintable() or _is_text(value)
    if isinstance(value, int):
        return abs(value) < _TOO_LONG
    return value is None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _is_unit(unit: object) -> bool:
    return isinstance(unit, str) and bool(unit) and unit.isprintable()


def _refused(plan: Plan, why: str, remedy: str) -> MisuseError:
    return MisuseError(f"a plan ({type(plan).__name__}) can't be stored: {why}. Nothing was read or changed. {remedy}.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
