"""The options of reading a table, which do not depend on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound

if TYPE_CHECKING:
    from collections.abc import Mapping

KeyOrder = Literal["asc", "desc"]
OnNull = Literal["error", "skip", "include_once"]
AUTO: Literal["auto"] = "auto"
SETTLE_FOR = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Which rows of a table are read, and when they count as final; `BookmarkedReader.jdbc` says what each means.

    Raises:
        OptionError: a choice that is none.
    """

    keys: tuple[str, ...] = ()
    order: KeyOrder = "asc"
    settle: timedelta | Literal["auto"] = AUTO
    settle_for: timedelta = SETTLE_FOR
    lookback: timedelta | None = None
    zone: str | None = None
    on_null: OnNull = "error"
    per: str | None = None
    bound: Bound = UNBOUND

    def __post_init__(self) -> None:
        check_choice("order", self.order, KeyOrder)
        check_choice("on_null", self.on_null, OnNull)
        if self.settle != AUTO:
            _check_time("settle", self.settle, "'auto', or a timedelta that is not negative")
        _check_time("settle_for", self.settle_for, "a timedelta that is not negative")
        if self.lookback is not None:
            _check_time("lookback", self.lookback, "a timedelta above 0", least=timedelta.resolution)
        if self.zone is not None:
            _check_zone(self.zone)
        if self.per is not None:
            self._check_per()
        for name in ("max_files", "max_bytes"):
            if getattr(self.bound, name) is not None:
                raise OptionError(f"{name}: a table is bounded by max_rows or window. Nothing was read or changed.")

    def _check_per(self) -> None:
        if not (isinstance(self.per, str) and self.per):
            raise OptionError(f"per={self.per!r}: expected the name of a column, or None. Nothing was read or changed.")
        unfit = {
            "no keys=[...]": not self.keys,
            "on_null='include_once'": self.on_null == "include_once",
            "max_rows or window": self.bound.is_given,
            "lookback": self.lookback is not None,
        }
        for what, is_given in unfit.items():
            if is_given:
                raise OptionError(
                    f"per={self.per!r} with {what}: each value is read whole, by keys of its rows. Nothing was read or "
                    "changed."
                )

    def stored(self) -> dict[str, Any]:
        """Return as plain values what a look without the script needs of them."""
        lookback = {} if self.lookback is None else {"lookback_us": _micros(self.lookback)}
        return {
            "keys": list(self.keys),
            "order": self.order,
            "settle_us": _micros(self.settle) if isinstance(self.settle, timedelta) else None,
            **lookback,
            "zone": self.zone,
            "on_null": self.on_null,
            **({} if self.per is None else {"per": self.per}),
            "bound": self.bound.stats(),
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> TableOptions:
        """Return what `stored` returned. A look does not wait: what is not final yet is left out."""
        settle, lookback = map(_of_micros, (values["settle_us"], values.get("lookback_us")))
        return cls(
            keys=tuple(values["keys"]),
            order=values["order"],
            settle=AUTO if settle is None else settle,
            settle_for=timedelta(0),
            lookback=lookback,
            zone=values["zone"],
            on_null=values["on_null"],
            per=values.get("per"),
            bound=Bound.of_stats(values["bound"]),
        )


def _micros(time: timedelta) -> int:
    return time // timedelta(microseconds=1)


def _of_micros(micros: object) -> timedelta | None:
    return None if micros is None else timedelta(microseconds=int(str(micros)))


def _check_time(name: str, value: object, expected: str, least: timedelta = timedelta(0)) -> None:
    if not isinstance(value, timedelta) or value < least:
        raise OptionError(f"{name}={value!r}: expected {expected}. Nothing was read or changed.")


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise OptionError(
            f"zone={zone!r}: expected the name of a time zone such as 'UTC' or 'Europe/Berlin'. Nothing was read or "
            "changed."
        ) from error
