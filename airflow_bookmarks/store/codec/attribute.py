"""Attributes: typed readers of what an item holds. What has not the type or the spelling that this package writes is
damage, and is never guessed at: a condition of a later write would compare with the guess, and never hold.

    with the item `RUN 3.7`:   fields.number("epoch")            int >= 0, of ten digits at most, no bool
                               fields.optional_text("error")     text, None where it is absent or None
                               fields.run_key("run")             `number.fence`, as `str(RunKey)` wrote it
                               fields.moment("lease_until")      ISO 8601 in UTC, as `to_text` wrote it
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.metadata.known import is_moment, is_size, is_text, is_texts
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.instant import from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

NUMBER_DIGITS = 10  # as many as a sort key has for a run number, a fence or an epoch
NUMBER_END: int = 10**NUMBER_DIGITS

_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MISSING: Any = object()


def is_number(value: object) -> bool:
    """Whether a value is a number in the range of keys and counts: from 0, of ten digits at most."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < NUMBER_END


def run_key_of(text: object) -> RunKey | None:
    """Return the run key that a text of the form `number.fence` names; None unless `str(RunKey)` wrote it.

    Example:
        >>> run_key_of("3.7"), run_key_of("03.7"), run_key_of("3.7.1")
        (RunKey(number=3, fence=7), None, None)
    """
    parts = text.split(".") if isinstance(text, str) else []
    if len(parts) != 2 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    return RunKey(int(parts[0]), int(parts[1]))


@dataclass(frozen=True, slots=True)
class Fields:
    """The attributes of one item, or of a map within one, read by type.

    `item` names the item and `advice` the remedy, for errors; `path` is the place of a map within the item.

    Every reader raises StateCorruptError, which names item and attribute. Those called `optional_` return None where
    the attribute is absent or None.
    """

    item: str
    advice: str
    values: Mapping[str, Any]
    path: str = ""

    @classmethod
    def of(cls, item: str, advice: str, values: object, path: str = "") -> Fields:
        """Return the fields of a value that has to be a map with text names."""
        if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
            _refuse(item, advice, path.rstrip(".") or "all of it", values, "no map")
        return cls(item, advice, values, path)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse an attribute that has the right type but no valid meaning."""
        _refuse(self.item, self.advice, self.path + name, self.values.get(name, _MISSING), why)

    # ---- single values

    def number(self, name: str) -> int:
        """Return a count, or a part of a key: from 0, of ten digits at most."""
        return int(self._read(name, is_number, "no number from 0 to 9999999999"))

    def size(self, name: str) -> int:
        """Return a number of bytes or rows: from 0."""
        return int(self._read(name, is_size, "no number from 0 on"))

    def text(self, name: str) -> str:
        return str(self._read(name, is_text, "no text"))

    def flag(self, name: str) -> bool:
        return bool(self._read(name, _is_flag, "neither true nor false"))

    def moment(self, name: str) -> datetime:
        """Return a time."""
        return from_text(self.moment_text(name))

    def moment_text(self, name: str) -> str:
        """Return a time as the text that it is stored as."""
        return str(self._read(name, is_moment, "no time as 2013-01-31T23:59:58.000000Z"))

    def sha256(self, name: str) -> str:
        """Return a hash: 64 hexadecimal digits in lower case."""
        return str(self._read(name, _is_sha256, "no hash of 64 hexadecimal digits"))

    def run_key(self, name: str) -> RunKey:
        """Return a run key, written as `number.fence`."""
        found = run_key_of(self._read(name, is_text, "no run as number.fence"))
        if found is None:
            self.refuse(name, "is no run as number.fence")
        return found

    def optional_number(self, name: str) -> int | None:
        return None if self.values.get(name) is None else self.number(name)

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def optional_moment_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.moment_text(name)

    # ---- lists and maps

    def place(self, name: str) -> str:
        """Return the place of files, or what a sink calls a place: text that can be passed to a file system."""
        return str(self._read(name, _is_place, "no place"))

    def places(self, name: str) -> tuple[str, ...]:
        """Return a list of places."""
        return tuple(self._read(name, _is_places, "no list of places"))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._read(name, is_texts, "no list of texts"))

    def moments(self, name: str) -> tuple[datetime, ...]:
        """Return a list of times."""
        return tuple(map(from_text, self._read(name, _is_moments, "no list of times")))

    def numbers(self, name: str) -> tuple[int, ...]:
        return tuple(self._read(name, _is_numbers, "no list of numbers"))

    def bytes(self, name: str) -> bytes:
        return bytes(self._read(name, _is_bytes, "no bytes"))

    def map(self, name: str) -> Fields:
        """Return a nested map."""
        if name not in self.values:
            self.refuse(name, "is missing")
        return Fields.of(self.item, self.advice, self.values[name], f"{self.path}{name}.")

    def maps(self) -> Iterator[tuple[str, Fields]]:
        """Yield each attribute by name; all of them have to be maps."""
        return ((name, self.map(name)) for name in self.values)

    def named(self, prefix: str) -> Iterator[tuple[str, Fields]]:
        """Yield each map whose name begins with `prefix`, by the rest of the name."""
        return ((name.removeprefix(prefix), self.map(name)) for name in self.values if name.startswith(prefix))

    def check(self, name: str, is_valid: Callable[[Any], bool], what: str) -> None:
        """Check an attribute that may be absent; `what` describes an invalid value."""
        if name in self.values:
            self._read(name, is_valid, what)

    def _read(self, name: str, is_valid: Callable[[Any], bool], what: str) -> Any:
        value = self.values.get(name, _MISSING)
        if value is _MISSING:
            self.refuse(name, "is missing")
        if not is_valid(value):
            self.refuse(name, f"is {what}")
        return value


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_bytes(value: object) -> bool:
    return isinstance(value, bytes)


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_place(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_places(value: object) -> bool:
    return isinstance(value, list) and all(_is_place(each) for each in value)


def _is_moments(value: object) -> bool:
    return isinstance(value, list) and all(is_moment(each) for each in value)


def _is_numbers(value: object) -> bool:
    return isinstance(value, list) and all(is_number(each) for each in value)


def _refuse(item: str, advice: str, name: str, value: object, why: str) -> NoReturn:
    shown = "" if value is _MISSING else f" ({_shortened(value)})"
    verb = "" if why.startswith("is ") else "is "
    raise StateCorruptError(
        f"the item {item} of the state table can't be read: its attribute {name!r} {verb}{why}{shown}. Nothing was "
        f"read or changed. {advice}"
    )


def _shortened(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | bytes | None) else type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_SHOWN = 60
