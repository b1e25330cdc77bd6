"""Parse the address of a database: one line of text that state keeps and people are shown.

    conn:crm
    jdbc:postgresql://db.example.com:5432/crm?sslmode=require
    jdbc:mariadb://[2001:db8::7]:3306/crm
    jdbc:sqlserver://db.example.com:1433;databaseName=crm;encrypt=true
    jdbc:oracle:thin:@//db.example.com:1521/crm
    jdbc:redshift://db.example.com:5439/crm
    jdbc:sqlite:/var/lib/crm.db

It never holds a secret: the user and the password come from the connection that `conn:` names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.databases.dialects import find_dialect
from airflow_bookmarks.databases.url_form import form_of, general_form

if TYPE_CHECKING:
    from airflow_bookmarks.core.database.dialect import DialectName

_DIALECTS: tuple[DialectName, ...] = ("postgresql", "mysql", "mariadb", "sqlserver", "oracle", "redshift", "sqlite")
_CONN, _JDBC = "conn:", "jdbc:"
_CONN_ID = re.compile(r"[A-Za-z0-9_.-]{1,250}")
_SECRET = re.compile(r"user|passw|passphrase|pwd|secret|token|credential", re.IGNORECASE)
_CREDENTIALS = (
    "Give the user and the password to a connection and write 'conn:<its id>': an Airflow connection, the variable "
    "AIRFLOW_CONN_<ID>, or what spark.bookmarks.access.<id> names"
)


@dataclass(frozen=True, slots=True)
class DatabaseLocation:
    """The parts of a JDBC URL. `database` is the path of the file for SQLite, which has no host and no port."""

    dialect: DialectName
    host: str | None
    port: int | None
    database: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The URL without its parameters, with the port written out.

        Example:
            >>> DatabaseLocation("postgresql", "::1", 5432, "crm", (("sslmode", "require"),)).name
            'jdbc:postgresql://[::1]:5432/crm'
        """
        if self.dialect == "sqlite":
            return f"{_JDBC}sqlite:{self.database}"
        host = f"[{self.host}]" if ":" in (self.host or "") else self.host
        return form_of(self.dialect).written(self.dialect, f"{host}:{self.port}", self.database)

    def __str__(self) -> str:
        return f"{self.name}{form_of(self.dialect).joined(self.parameters)}"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where a database is: by the id of a connection, or by a JDBC URL; exactly one of them is given.

    `str()` gives the text back. A URL has one spelling: the host in lower case, the port written out, and the
    parameters in the order of their names.

    Example:
        >>> DatabaseAddress.parse("conn:crm").conn_id
        'crm'
        >>> str(DatabaseAddress.parse("jdbc:postgresql://DB.example.com/crm?sslmode=require"))
        'jdbc:postgresql://db.example.com:5432/crm?sslmode=require'
    """

    conn_id: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.conn_id is None) == (self.url is None):
            raise OptionError(
                "the address of a database is either the id of a connection or a JDBC URL, and exactly one of them. "
                "Nothing was read or changed."
            )
        if self.conn_id is not None and not _CONN_ID.fullmatch(self.conn_id):
            raise _wrong("names a connection by an id that has other characters than letters, digits, '_', '-' and '.'")
        if self.url is not None:
            object.__setattr__(self, "url", str(_location(self.url)))

    @classmethod
    def parse(cls, text: str) -> DatabaseAddress:
        """Return the address that `text` writes.

        Raises:
            OptionError: neither `conn:` nor a JDBC URL of a known database; or a user, a password or another secret is
                in it. The message doesn't repeat the text.
        """
        if text.startswith(_CONN):
            return cls(conn_id=text.removeprefix(_CONN))
        return cls(url=text)

    @property
    def location(self) -> DatabaseLocation | None:
        """The parts of the URL; None for the id of a connection."""
        return None if self.url is None else _location(self.url)

    @property
    def name(self) -> str:
        """The text without parameters: it stays the same when only the way to connect changes."""
        location = self.location
        return f"{_CONN}{self.conn_id}" if location is None else location.name

    def __str__(self) -> str:
        return f"{_CONN}{self.conn_id}" if self.url is None else self.url


def _location(url: str) -> DatabaseLocation:
    parts = _split(url)
    dialect = _dialect(parts.scheme)
    if dialect == "sqlite":
        return DatabaseLocation("sqlite", None, None, _file(parts))
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _wrong("has a port that is no number, or names several hosts; give one host") from error
    path, form = parts.path.removeprefix("/"), form_of(dialect)
    database = unquote(path) if form.is_encoded else path
    if not host or not database or "/" in path or (port or form.port) is None:
        written = form.written(dialect, "HOST:PORT", "DATABASE")
        raise _wrong(f"does not name one host and one database; write {written}")
    return DatabaseLocation(dialect, host, port or form.port, database, _parameters(dialect, parts))


def _split(url: str) -> SplitResult:
    if not url.startswith(_JDBC):
        raise _wrong("begins neither with 'conn:' nor with 'jdbc:'")
    try:
        general = general_form(url.removeprefix(_JDBC))
    except ValueError as error:
        raise _wrong(f"can't be read as a URL; write {error}") from None
    try:
        url.encode()
        parts = urlsplit(general)
    except ValueError as error:
        raise _wrong("can't be read as a URL") from error
    if "@" in parts.netloc or "@" in unquote(parts.netloc):
        raise _wrong(f"holds a user or a password. {_CREDENTIALS}")
    if "#" in url:
        raise _wrong("holds a '#', which is no part of a JDBC URL")
    return parts


def _dialect(scheme: str) -> DialectName:
    if scheme in _DIALECTS or (scheme and find_dialect(scheme) is not None):
        return scheme
    known = ", ".join(f"jdbc:{dialect}:" for dialect in _DIALECTS)
    raise _wrong(f"names a database of a kind that is not known; there are {known}")


def _file(parts: SplitResult) -> str:
    path = parts.path
    if parts.netloc or parts.query or not path.startswith("/") or path.startswith("//") or path.endswith("/"):
        raise _wrong(
            "has to name an SQLite file by its absolute path and without parameters: jdbc:sqlite:/var/lib/crm.db"
        )
    return path


def _parameters(dialect: DialectName, parts: SplitResult) -> tuple[tuple[str, str], ...]:
    given: dict[str, str] = {}
    if form_of(dialect).is_encoded:
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    else:
        pairs = [(name, value) for name, _, value in (part.partition("=") for part in parts.query.split("&")) if name]
    for name, value in pairs:
        if _SECRET.search(name) or redacted(f"{name}={value}") != f"{name}={value}":
            raise _wrong(f"has the parameter {name!r}, which holds a user or a secret. {_CREDENTIALS}")
        if name in given:
            raise _wrong(f"has the parameter {name!r} twice")
        given[name] = value
    return tuple(sorted(given.items()))


def _wrong(what: str) -> OptionError:
    # The text itself is not repeated: it may hold a password, in a place where none belongs.
    return OptionError(f"the address of a database {what}. Nothing was read or changed.")
