"""What it takes to connect to a database: where it is, as whom, and how; in Airflow's forms and that of RDS."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.address import DatabaseAddress, DatabaseLocation
from airflow_bookmarks.databases.client import client_of
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.databases.parameters import is_secret, jdbc_parameters
from airflow_bookmarks.databases.url_form import form_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.engine import URL

    from airflow_bookmarks.core.database.dialect import DialectName

# What Airflow, RDS and SQLAlchemy call the kinds of databases.
_DIALECTS: Mapping[str, DialectName] = {
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "aurora-postgresql": "postgresql",
    "mysql": "mysql",
    "aurora-mysql": "mysql",
    "mariadb": "mariadb",
    "mssql": "sqlserver",
    "sqlserver": "sqlserver",
    "oracle": "oracle",
    "redshift": "redshift",
    "sqlite": "sqlite",
}
_SQLITE_DRIVER = "org.sqlite.JDBC"
# By Airflow's own names and their aliases, and by those of a secret of RDS.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "conn_type": ("conn_type", "engine"),
    "host": ("host",),
    "port": ("port",),
    "schema": ("schema", "dbname", "database"),
    "login": ("login", "username", "user"),
    "password": ("password",),
}
WITHOUT_LOGIN = (
    "There is no user and no password: a JDBC URL has none. If the database wants them, give conn:<id> in place of the "
    "URL. On workers that is a connection of Airflow, which bookmark_databases=['<id>'] of the operator hands to a "
    "driver in client mode; elsewhere set AIRFLOW_CONN_<ID>, or spark.bookmarks.access.<id>, which names a secret "
    "(docs/guides/databases-rights.md#credentials)."
)
_TOKENS = ("iam", "azure_conn_id")  # extras of Airflow by which a password is fetched anew for each connection


@dataclass(frozen=True, slots=True)
class DatabaseLogin:
    """How a database is entered. `repr()` and `str()` show no password, and no parameter, which may hold one too.

    Attributes:
        dialect: "postgresql", "mysql", "mariadb", "sqlserver", "oracle", "redshift", "sqlite", or one of your own.
        host: A name or an address; None for SQLite.
        port: None for SQLite.
        database: Its name; for SQLite the absolute path of the file.
        user: None: whom the client and the JDBC driver take by themselves.
        password: None where none is needed.
        parameters: TLS and others, by the names of the JDBC driver or of Python's client; see `databases.parameters`.

    Example:
        >>> DatabaseLogin("postgresql", "db", 5432, "crm", "etl", "hunter2", {"sslmode": "require"}).jdbc_url
        'jdbc:postgresql://db:5432/crm?sslmode=require'
    """

    dialect: DialectName
    host: str | None
    port: int | None
    database: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    # ---- from text

    @classmethod
    def of_address(cls, address: DatabaseAddress) -> DatabaseLogin:
        """Return the login of a URL: without user and password, as whom the client connects by itself.

        Raises:
            OptionError: the address is the id of a connection.
        """
        location = address.location
        if location is None:
            raise OptionError(
                f"{str(address)!r} is the id of a connection, and not a URL: it takes the access of a worker or of a "
                "driver to find its login. Nothing was read or changed."
            )
        return cls._of_location(location)

    @classmethod
    def of_text(cls, text: str, what: str = "the login of a database") -> DatabaseLogin:
        """Return the login that a text holds, in the form of `of_json` or of `of_uri`; see both.

        Raises:
            OptionError: it can't be read, or is incomplete.
        """
        return cls.of_json(text, what) if text.lstrip().startswith("{") else cls.of_uri(text.strip(), what)

    @classmethod
    def of_json(cls, text: str, what: str = "the login of a database") -> DatabaseLogin:
        """Return the login in a JSON object: of Airflow (`conn_type`, `login`, ...) or of a secret of RDS (`engine`).

        Args:
            text: the object.
            what: what it is, for messages, which never repeat the text.

        Raises:
            OptionError: it can't be read, or is incomplete.

        Example:
            >>> DatabaseLogin.of_json('{"engine": "postgres", "host": "db", "username": "etl", "dbname": "crm"}').user
            'etl'
        """
        try:
            given = json.loads(text)
        except ValueError:
            # Not with its cause: that shows a piece of the text.
            raise _wrong(what, "is neither a JSON object nor a URI") from None
        if not isinstance(given, dict):
            raise _wrong(what, "is no JSON object")
        found = {field: _first(given, names) for field, names in _ALIASES.items()}
        for name, value in found.items():
            if value is not None and not isinstance(value, (str, int) if name == "port" else str):
                raise _wrong(what, f"has a value for {name!r}, which is no text")
        return cls.of_fields(**found, extra=_extra(given.get("extra") or {}, what), what=what)

    @classmethod
    def of_uri(cls, text: str, what: str = "the login of a database") -> DatabaseLogin:
        """Return the login in a URI of Airflow: `postgresql://etl:hunter2@db:5432/crm?sslmode=require`.

        Raises:
            OptionError: it can't be read, or is incomplete; the message does not repeat it.

        Example:
            >>> DatabaseLogin.of_uri("postgres://etl:p%40ss@[::1]/crm").host
            '::1'
        """
        try:
            parts = urlsplit(text)
            port = parts.port
            if not parts.netloc and not parts.path.startswith("/"):
                raise ValueError("no //")
        except ValueError:
            raise _wrong(what, "is no URI that can be read: write special characters as %XX") from None
        extra: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
        if "__extra__" in extra:  # Airflow's form for extras that are not all text
            extra |= _extra(extra.pop("__extra__"), what)
        return cls.of_fields(
            conn_type=parts.scheme,
            host=_host(parts),
            port=port,
            schema=_unquoted(parts.path.removeprefix("/")),
            login=_unquoted(parts.username),
            password=_unquoted(parts.password),
            extra=extra,
            what=what,
        )

    @classmethod
    def of_fields(
        cls,
        *,
        conn_type: str | None,
        host: str | None,
        port: int | str | None,
        schema: str | None,
        login: str | None,
        password: str | None,
        extra: Mapping[str, Any],
        what: str,
    ) -> DatabaseLogin:
        """Return the login in the fields of an Airflow connection; `what` names it in messages.

        Raises:
            OptionError: of a type that is not known, or incomplete.
        """
        declared = (conn_type or "").lower()
        if declared == "jdbc":
            # Airflow's type for all that has a JDBC driver: the URL stands in the field of the host.
            location = DatabaseAddress.parse(host or "").location
            if location is None:
                raise _wrong(what, "has no JDBC URL as its host")
            return cls._of_location(location, login, password, extra)
        dialect = _DIALECTS.get(declared)
        if dialect is None:
            raise _wrong(what, f"has the type {declared!r}; known are {', '.join(sorted(_DIALECTS))} and jdbc")
        if dialect == "sqlite":
            return cls("sqlite", None, None, _file_of(host, schema, what))
        schema = str(extra.get("service_name") or schema or "") if dialect == "oracle" else schema
        missing = [name for name, value in (("host", host), ("schema (the database)", schema)) if not value]
        if missing or not host or not schema:
            raise _wrong(what, f"has no {' and no '.join(missing)}")
        location = DatabaseLocation(dialect, host, _port(port, what) or form_of(dialect).port, schema)
        _check_static(extra, what)
        return cls._of_location(location, login, password, extra)

    @classmethod
    def _of_location(
        cls,
        location: DatabaseLocation,
        user: str | None = None,
        password: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> DatabaseLogin:
        parameters = dict(location.parameters) | _parameters(extra or {})
        place = (location.dialect, location.host, location.port, location.database)
        return cls(*place, user or None, password or None, parameters)

    # ---- for those who connect

    @property
    def name(self) -> str:
        """The JDBC URL without parameters, for people."""
        return DatabaseLocation(self.dialect, self.host, self.port, self.database).name

    def __str__(self) -> str:
        return self.name

    @property
    def remedy(self) -> str:
        """What to do if the database refuses it, with a blank before it; empty where it has a user or a password."""
        return "" if self.user or self.password or self.dialect == "sqlite" else f" {WITHOUT_LOGIN}"

    @property
    def jdbc_url(self) -> str:
        """The URL for a JDBC driver, without secrets.

        Raises:
            OptionError: the driver can't do what a parameter says about TLS.
        """
        form = form_of(self.dialect)
        if not form.is_encoded and form.parameters in self.database:
            raise OptionError(
                f"the name of the database {self.database!r} has a {form.parameters!r}, with which its JDBC driver "
                "can't open it. Nothing was read or changed. Give it another name."
            )
        given = jdbc_parameters(self.dialect, self.parameters)
        shown = tuple(pair for pair in sorted(given.items()) if not self._is_property(*pair))
        return str(DatabaseLocation(self.dialect, self.host, self.port, self.database, shown))

    def jdbc_properties(self) -> dict[str, str]:
        """Return the secrets for a JDBC driver, the user, the class of the driver, and what can't stand in its URL.

        Raises:
            OptionError: the driver can't do what a parameter says about TLS.
        """
        given = jdbc_parameters(self.dialect, self.parameters)
        driver = _SQLITE_DRIVER if self.dialect == "sqlite" else dialect_named(self.dialect).driver
        found = {"driver": driver, "user": self.user, "password": self.password}
        return {name: value for name, value in found.items() if value is not None} | {
            name: value for name, value in given.items() if self._is_property(name, value)
        }

    def _is_property(self, name: str, value: str) -> bool:
        # Most drivers read no %XX, so that an `&` in a value would end it.
        form = form_of(self.dialect)
        return is_secret(name, value) or (not form.is_encoded and form.between in value)

    def sqlalchemy_url(self) -> URL:
        """Return the URL for SQLAlchemy, with the password, which its `repr()` masks, and without parameters.

        Raises:
            OptionError: SQLAlchemy or the client of this database is not installed.
        """
        from sqlalchemy.engine import URL

        driver = client_of(self.dialect).driver
        return URL.create(driver, self.user, self.password, self.host, self.port, self.database)


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _unquoted(text: str | None) -> str | None:
    return None if text is None else unquote(text)


def _host(parts: SplitResult) -> str | None:
    """Return the host as it is written: that of SQLite is the path of a file, where the case of letters counts."""
    place = parts.netloc.rpartition("@")[2]
    host = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    return unquote(host) or None


def _extra(given: Any, what: str) -> dict[str, Any]:
    try:
        extra = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        raise _wrong(what, "has extra fields that are no JSON") from None
    if not isinstance(extra, dict):
        raise _wrong(what, "has extra fields that are no JSON object")
    return extra


def _port(port: int | str | None, what: str) -> int | None:
    if port is None or port == "":
        return None
    text = str(port)
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**16):
        raise _wrong(what, "has a port that is no number between 1 and 65535")
    return int(text)


def _file_of(host: str | None, schema: str | None, what: str) -> str:
    # Airflow keeps the path as the host; in a URI with four slashes it is what follows an empty host.
    path = host if host and host.startswith("/") else f"/{(schema or '').lstrip('/')}"
    if (host and not host.startswith("/")) or path == "/":
        raise _wrong(what, "has to name an SQLite file by its absolute path")
    return path


def _check_static(extra: Mapping[str, Any], what: str) -> None:
    for name in _TOKENS:
        if extra.get(name):
            raise _wrong(what, f"has {name!r} among its extra fields, and passwords that end are not supported")


def _parameters(extra: Mapping[str, Any]) -> dict[str, str]:
    """Return the extra fields that can be parameters: text, numbers and switches, and the `ssl` of MySQL."""
    found: dict[str, str] = {}
    for name, value in extra.items():
        if name == "ssl" and isinstance(value, dict):
            # As MySQL's hook of Airflow takes it: {"ca": ..., "cert": ..., "key": ...}.
            found |= {f"ssl_{part}": str(path) for part, path in value.items()}
        elif isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(value, (str, int)):
            found[name] = str(value)
    return found


def _wrong(what: str, why: str) -> OptionError:
    return OptionError(f"{what} {why}. Nothing was read or changed.")
