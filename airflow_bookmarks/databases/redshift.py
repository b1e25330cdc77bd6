"""Run statements in Redshift, by the client of AWS for it: `redshift_connector`, without SQLAlchemy. Untried.

That client comes with Airflow's provider for Amazon, so workers have it; a driver takes the extra `redshift`. Reads by
key go on through Spark, as `databases.client` says. Each session has UTC as its zone, in which times are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow_bookmarks.core.errors import DatabaseError, OptionError
from airflow_bookmarks.core.text.redaction import MARK, redacted
from airflow_bookmarks.databases.database import Database

if TYPE_CHECKING:
    from airflow_bookmarks.databases.login import DatabaseLogin

_SETTINGS = ("SET timezone TO 'UTC'",)
_MODES = ("verify-ca", "verify-full")  # those of the client; it verifies the authority unless it is told otherwise
SERIALIZATION = "1023"  # how Redshift calls a transaction that it rolled back for the sake of another one


class RedshiftDatabase(Database):
    """One connection to Redshift; see `Database`, whose promises it keeps.

    Args:
        login: what it was opened by.
        client: a connection of `redshift_connector`, which commits each statement by itself.
    """

    def __init__(self, login: DatabaseLogin, client: Any) -> None:
        super().__init__(login, client)
        self._client = client
        self._is_lost = False

    def close(self) -> None:
        """End the connection; a transaction that is open is rolled back."""
        try:
            self._client.close()
        except _errors():
            self._is_lost = True  # it was broken before

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows; see `Database.rows`."""
        cursor = self._asked(sql)
        return [] if cursor.description is None else [tuple(row) for row in cursor.fetchall()]

    def execute(self, sql: str) -> int:
        """Run one statement and return how many rows it changed; see `Database.execute`."""
        return int(self._asked(sql).rowcount)

    def _asked(self, sql: str) -> Any:
        if self._is_lost:
            raise DatabaseError(
                f"{self.name}: the connection broke before. The statement was not run. Open the database again.",
                is_lost=True,
            )
        try:
            cursor = self._client.cursor()
            cursor.execute(sql)
        except _errors() as error:
            self._raise_refused(error)
        return cursor

    def _raise_refused(self, error: Exception) -> NoReturn:
        """Raise what the client says; not with its cause, whose text may hold the statement."""
        code, text = _told(error, self._login)
        if code is None:
            self._is_lost = True
            what = "the connection broke, so whether the last statement took effect is not known"
            raise DatabaseError(
                f"{self.name}: {what} ({text}). Try again when it is reachable.", is_lost=True
            ) from None
        left = "The transaction is rolled back." if self._is_in_transaction else "The statement changed nothing."
        self._refusal = DatabaseError(f"{self.name} refused a statement: {text}. {left}", code)
        raise self._refusal from None

    def _roll_back(self) -> None:
        if self._is_lost:
            return
        try:
            self._client.cursor().execute("ROLLBACK")
        except _errors():
            self._is_lost = True  # the server rolls back when it notices; the error that led here is the one to be told


def open_redshift(login: DatabaseLogin) -> Database:
    """Connect to Redshift.

    Raises:
        OptionError: the client is not installed.
        DatabaseError: Redshift does not answer, or refuses the login.

    Example:
        with open_redshift(DatabaseLogin("redshift", "host", 5439, "dw", "etl", "hunter2")) as database:
            database.rows("SELECT version()")
    """
    why_not = why_no_redshift()
    if why_not is not None:
        raise OptionError(f"{why_not} Nothing was read or changed.")
    import redshift_connector

    try:
        client = redshift_connector.connect(**_arguments(login))
    except _errors() as error:
        as_whom = f" as user {login.user!r}" if login.user else ""
        code, text = _told(error, login)
        # Not with its cause: frames of the client hold the password.
        raise DatabaseError(
            f"{login.name} can't be entered{as_whom}: {text}. Nothing was read or changed.{login.remedy}", code
        ) from None
    client.autocommit = True
    database = RedshiftDatabase(login, client)
    try:
        for statement in _SETTINGS:
            database.execute(statement)
    except DatabaseError:
        database.close()
        raise
    return database


def why_no_redshift() -> str | None:
    """Say why Redshift can't be asked by Python here; None: it can."""
    try:
        import redshift_connector  # noqa: F401 (whether it is there)
    except ImportError as error:
        return (
            f"Redshift is reached through redshift_connector, which this Python can't import ({error}). Install it on "
            "the Spark driver and on the Airflow workers: pip install 'airflow-provider-bookmarks[redshift]'."
        )
    return None


def _arguments(login: DatabaseLogin) -> dict[str, Any]:
    """Return what the client takes: `sslmode` where it knows the mode, and no TLS where the login asks for none."""
    given = {name.lower(): value for name, value in login.parameters.items()}
    asked = given.get("sslmode", "").lower()
    mode = {"sslmode": asked} if asked in _MODES else {}
    plain = {"ssl": False} if asked == "disable" or given.get("ssl", "").lower() == "false" else {}
    place = {"host": login.host, "port": login.port, "database": login.database}
    return {**place, "user": login.user, "password": login.password, **mode, **plain}


def _told(error: Exception, login: DatabaseLogin) -> tuple[str | None, str]:
    """Return the code of an error of the server (None: there is none), and its first line without secrets.

    The client gives the fields of the protocol as a dict: C is the SQLSTATE, M the message. Where M is a number, that
    is what Redshift calls the error.
    """
    fields = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    said = str(fields.get("M") or error)
    code = fields.get("C")
    if said.strip() == SERIALIZATION:
        code, said = SERIALIZATION, f"{SERIALIZATION}, a violation of serializable isolation"
    line = said.strip().split("\n")[0].strip().rstrip(".")
    hidden = line.replace(login.password, MARK) if login.password else line
    return None if code is None else str(code), redacted(hidden)


def _errors() -> tuple[type[Exception], ...]:
    from redshift_connector.error import Error

    return (Error, OSError)
