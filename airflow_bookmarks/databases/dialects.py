"""The registry of dialects. One of your own is added by `register`, or by an entry point of an installed package."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, cast

from airflow_bookmarks.core.database.dialect import Dialect
from airflow_bookmarks.core.database.dialects.registry import DIALECTS
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.own_kind import errors_of, load_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.database.dialect import DialectName

log = logging.getLogger(__name__)

GROUP = "airflow_bookmarks.dialects"  # of entry points: the name of a dialect, and the class that it is made of

_KNOWN: dict[DialectName, Dialect] = dict(DIALECTS)
_NAME = re.compile(r"[a-z][a-z0-9]*", re.ASCII)


def register(dialect: Dialect) -> None:
    """Make a dialect of your own known to this process; a second call with the same dialect has no effect.

    Its name is that of its JDBC URLs: `sqlite` of `jdbc:sqlite:...`. Call it in the script before the job begins. A
    dialect that an installed package names by an entry point of the group `airflow_bookmarks.dialects` needs no call.

    Raises:
        OptionError: another dialect has that name; or it is no object of a dialect, or has a name that no URL has.
    """
    _check(dialect)
    known = _KNOWN.setdefault(dialect.name, dialect)
    if type(known) is not type(dialect):
        raise OptionError(
            f"the name {dialect.name!r} of the dialect {type(dialect).__qualname__} is that of "
            f"{type(known).__qualname__} already. Nothing was registered."
        )


def _check(dialect: Dialect) -> None:
    if not isinstance(dialect, Dialect):
        raise OptionError(f"{dialect!r} is no object of a dialect. Nothing was registered.")
    for name in ("name", "driver"):
        if not isinstance(getattr(dialect, name, None), str):
            raise OptionError(f"{type(dialect).__qualname__} has no {name}, a text. Nothing was registered.")
    if not _NAME.fullmatch(dialect.name):
        raise OptionError(
            f"the dialect {type(dialect).__qualname__} has the name {dialect.name!r}, which no JDBC URL can have. "
            "Nothing was registered. It takes small letters and digits."
        )


@contextmanager
def registered(dialect: Dialect) -> Iterator[None]:
    """Make a dialect known within the block, as a test needs it; one that was known before stays known after it.

    Raises:
        OptionError: another dialect has that name.
    """
    is_new = dialect.name not in _KNOWN
    register(dialect)
    try:
        yield
    finally:
        if is_new:
            del _KNOWN[dialect.name]


def find_dialect(name: DialectName) -> Dialect | None:
    """Return the dialect of that name; None where this process does not know it."""
    dialect = _KNOWN.get(name) or _installed(name)[0]
    return dialect if dialect is None or name in DIALECTS else cast("Dialect", _OwnDialect(dialect))


def dialect_named(name: DialectName) -> Dialect:
    """Return the dialect of that name.

    Raises:
        OptionError: there is none.
    """
    dialect = find_dialect(name)
    if dialect is None:
        raise OptionError(
            f"tables of {name!r} can't be read by key here; those of {', '.join(_KNOWN)} can. Nothing was read or "
            f"changed.{_why_unknown(name)}"
        )
    return dialect


class _OwnDialect:
    """A dialect of a user's own: whatever it raises beside errors of this package is a `SourceError`."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        with errors_of(self._dialect.name, DIALECTS, "dialect"):
            member = getattr(self._dialect, name)
        if not callable(member):
            return member

        @wraps(member)
        def called(*args: Any, **kwargs: Any) -> Any:
            with errors_of(self._dialect.name, DIALECTS, "dialect"):
                return member(*args, **kwargs)

        return called


def warn_if_untried(dialect: Dialect) -> None:
    """Log, once in each process, that no database of this kind has run the queries of a dialect."""
    if not dialect.is_tried:
        _warn(dialect.name)


@cache
def _warn(name: DialectName) -> None:
    log.warning(
        "The SQL for %s is untried: it was compared with what its documentation says, and no such database has run it. "
        "Compare what a run reads with what is there before you rely on it.",
        name,
    )


def _why_unknown(name: DialectName) -> str:
    why = _installed(name)[1]
    return (
        f" {why}" if why else " A dialect of your own is made known by airflow_bookmarks.databases.dialects.register."
    )


@cache
def _installed(name: DialectName) -> tuple[Dialect | None, str | None]:
    """Return the dialect that an installed package names, and why it can't be had; both None where none names it."""
    return load_kind(GROUP, name, _named)


def _named(made: object) -> dict[str, Dialect]:
    if not isinstance(made, Dialect):
        return {}
    _check(made)
    return {made.name: made}
