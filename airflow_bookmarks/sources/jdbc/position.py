"""The position of a context that reads a table, and its plans, as they are stored."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_bookmarks.core.amount import ROWS, Amount
from airflow_bookmarks.core.database.key import watermark_of
from airflow_bookmarks.core.database.windows.trail import Trail
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.sources.jdbc.recipe import Recipe
from airflow_bookmarks.sources.part_loop import PartsLeft
from airflow_bookmarks.sources.tables.stored_body import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.database.key import KeyType

T = TypeVar("T")

_VERSION = 3  # of what has earlier ends that name no rows
_TRAIL_VERSION = 2  # of what has a trail, or values by themselves
_PLAIN_VERSION = 1  # of what has neither: all earlier versions of this package read it
_MOST_SEEN = 16  # earlier ends that a position keeps


@dataclass(frozen=True, slots=True)
class EarlierEnd:
    """The last row that could be seen at a time by the clock of the database, in UTC.

    Its mark names no rows where too many share the keys.

    Raises:
        ValueError: `at` is no time.
    """

    at: str
    mark: Mark

    def __post_init__(self) -> None:
        datetime.fromisoformat(self.at)

    @classmethod
    def of(cls, moment: datetime, mark: Mark) -> EarlierEnd:
        """Return the end at an aware time."""
        return cls(moment.astimezone(UTC).isoformat(" ", "microseconds"), mark)

    @property
    def moment(self) -> datetime:
        """The time, aware."""
        return datetime.fromisoformat(self.at)

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return [self.at, *self.mark.stored()]

    @classmethod
    def of_stored(cls, values: list[Any]) -> EarlierEnd:
        """Return what `stored` returned."""
        at, *mark = values
        return cls(at, Mark(*_tuples(mark)))


def _tuples(values: list[Any]) -> tuple[Any, ...]:
    return tuple(_tuples(each) if isinstance(each, list) else each for each in values)


@dataclass(frozen=True, slots=True)
class TablePosition:
    """How far a table has been read: all rows up to `mark`, by `table`, but for values of a column in `parts`.

    `seen` are earlier ends of the table, newest last, which a later run may settle for; some that earlier versions have
    stored lie behind the mark. `identity` is that of the server, where it tells one. `trail` names the rows that were
    read behind the mark, as far as `lookback` goes; None: no run has looked back since the position was set. `is_set`
    tells that a person has set the mark, and no run has read a row since: the table need not reach so far.
    """

    table: TableKeys
    mark: Mark | None = None
    seen: tuple[EarlierEnd, ...] = ()
    identity: str | None = None
    has_nulls: bool = False
    trail: Trail | None = None
    parts: PartsLeft[Mark] | None = None
    is_set: bool = False

    def encode(self) -> bytes:
        """Return it as stored."""
        more: dict[str, Any] = {} if self.trail is None else {"trail": self.trail.stored()}
        more |= {} if self.parts is None else {"parts": self.parts.stored(Mark.stored)}
        more |= {"is_set": True} if self.is_set else {}
        is_plain = self.trail is None and self.parts is None
        # An earlier version would take all rows with the keys of such an end for read, also those that join them later.
        has_unnamed = bool(self.table.ties) and not all(each.mark.ties for each in self.seen)
        return _encoded(
            {
                **more,
                **self.table.stored(),
                "mark": None if self.mark is None else self.mark.stored(),
                "seen": [each.stored() for each in self.seen],
                "identity": self.identity,
                "has_nulls": self.has_nulls,
            },
            version=_VERSION if has_unnamed else _version(is_plain=is_plain),
        )

    @classmethod
    def decode(cls, body: bytes) -> TablePosition:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> TablePosition:
            seen = tuple(map(EarlierEnd.of_stored, values["seen"]))
            mark = Mark.of_stored(values["mark"])
            trail, parts = (
                Trail.of_stored(values.get("trail")),
                PartsLeft.of_stored(values.get("parts"), Mark.of_stored),
            )
            table = TableKeys.of_stored(values)
            # Earlier versions did not store it; but only a mark that was set has fewer values than there are keys.
            is_set = values.get("is_set", mark is not None and len(mark.values) < len(table.keys))
            return cls(table, mark, seen, values["identity"], values["has_nulls"], trail, parts, is_set)

        return _decoded(body, "position", read)

    def position(self) -> Position:
        """Return it for the lifecycle, with the first key as its watermark: all rows up to there are read."""
        key = self.table.keys[0].type
        return Position(self.encode(), self._watermark(key), order=key.order)

    def _watermark(self, key: KeyType) -> str | None:
        marks = [self.mark, *(self.parts.marks.values() if self.parts is not None else ())]
        found = [None if mark is None else watermark_of(key, mark.values[0]) for mark in dict.fromkeys(marks)]
        texts = [text for text in found if text is not None]
        if len(texts) < len(found):
            return None
        lowest = texts[0]
        for text in texts[1:]:
            compared = key.order.compare(text, lowest)
            if compared is None:
                return None
            if (compared < 0) is self.table.is_ascending:
                lowest = text
        return lowest


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The rows of one window of a table or query.

    `recipe` says of which, and `source` is that as SQL. `leads_to` is the position behind it. `count` None: there are
    more rows than were counted. `late` of them lie before the window: they came late. `part` is the value whose rows
    they are, where each is read by itself. `told_by` are the fewest of its keys that no two rows share; empty: all are
    needed, or other columns.
    """

    recipe: Recipe
    source: str
    window: KeyWindow
    leads_to: TablePosition
    count: int | None = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    read_again: int = 0
    edge: None = None
    late: int = 0
    part: PlanPart | None = None
    told_by: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.window.is_empty

    @property
    def has_more(self) -> bool:
        """Whether a bound left something to the next run, or values are left."""
        return OVER_BOUND in self.skipped or self.leads_to.parts is not None

    @property
    def amount(self) -> Amount:
        """How many rows there are, as far as they were counted."""
        return Amount(ROWS, self.count)

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it."""
        until = self.window.until
        return {
            **self.amount.stats(),
            **({"late": self.late} if self.late else {}),
            **({} if self.part is None else {"part": str(self.part)}),
            "skipped": dict(self.skipped),
            "keys": [key.name for key in self.leads_to.table.keys],
            "after": None if self.window.after is None else list(self.window.after.values),
            "until": None if until is None else list(until.values),
        }

    def summary(self) -> str:
        """Return it as one line for a log."""
        names = ", ".join(key.name for key in self.leads_to.table.keys)
        after = "the first row" if self.window.after is None else ", ".join(self.window.after.values)
        late = f", {self.late:,} of them late," if self.late else ""
        if self.window.until is None:
            return f"processing {self.count or 0} rows by {names}{late or ','} nothing new after {after}"
        count = "many" if self.count is None else f"{self.count:,}"
        names = names if self.part is None else f"{names}, those of {self.part},"
        return f"processing {count} rows by {names}{late} ({after}; {', '.join(self.window.until.values)}]"

    def encode(self) -> bytes:
        """Return it as stored."""
        options = self.recipe.options
        more: dict[str, Any] = {"late": self.late} if self.late else {}
        more |= {} if self.part is None else {"part": [self.part.column, self.part.value]}
        more |= {"told_by": list(self.told_by)} if self.told_by else {}
        return _encoded(
            {
                **more,
                "recipe": self.recipe.stored(),
                "source": self.source,
                **self.window.stored(),
                "leads_to": self.leads_to.encode().decode(),
                "count": self.count,
                "skipped": dict(self.skipped),
            },
            version=_version(is_plain=self.window.is_plain and options.lookback is None and options.per is None),
        )

    @classmethod
    def decode(cls, body: bytes) -> TablePlan:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> TablePlan:
            window = KeyWindow.of_stored(values)
            leads_to = TablePosition.decode(values["leads_to"].encode())
            recipe = Recipe.of_stored(values["recipe"])
            count, skipped, part = values["count"], values["skipped"], values.get("part")
            part, late = None if part is None else PlanPart(*part), values.get("late", 0)
            told_by = tuple(map(str, values.get("told_by", ())))
            return cls(
                recipe, values["source"], window, leads_to, count, skipped, late=late, part=part, told_by=told_by
            )

        return _decoded(body, "plan", read)

    def covering(self, earlier: TablePlan) -> TablePlan:
        """Return one plan over the windows of two, where this one begins where `earlier` ends."""
        count = None if self.count is None or earlier.count is None else self.count + earlier.count
        window = self.window.following(earlier.window)
        return replace(self, window=window, count=count, skipped={}, late=self.late + earlier.late)


def newest_seen(seen: Sequence[EarlierEnd], cut: datetime) -> Mark | None:
    """Return the newest end of the table that was seen before a time. A position may have gone beyond it."""
    return next((each.mark for each in reversed(seen) if each.moment < cut), None)


def kept_seen(seen: Sequence[EarlierEnd]) -> tuple[EarlierEnd, ...]:
    """Return which of the ends beyond a position it keeps for later runs: each row once, and not too many."""
    kept = [each for at, each in enumerate(seen) if at == 0 or each.mark != seen[at - 1].mark]
    # The newest and the oldest matter: which of those between are kept only says how soon rows come.
    while len(kept) > _MOST_SEEN:
        kept = [*kept[::2], *([kept[-1]] if len(kept) % 2 == 0 else [])]
    return tuple(kept)


def _version(*, is_plain: bool) -> int:
    # An earlier version would not look for late rows, and would move a position that has a trail without it. It would
    # also take what is left of values for read.
    return _PLAIN_VERSION if is_plain else _TRAIL_VERSION


def _encoded(values: Mapping[str, Any], version: int) -> bytes:
    return json.dumps({"version": version, **values}, ensure_ascii=False).encode()


def _decoded(body: bytes, what: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    what = f"{what} of a table"
    return decoded(what, _VERSION, lambda: json.loads(body), read)
