"""What is said of Redshift's answers, by the forms in which its client gives them; no server was there to ask."""

from __future__ import annotations

from typing import Any

import pytest
from redshift_connector.error import InterfaceError, ProgrammingError

from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.databases import redshift
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.databases.redshift import RedshiftDatabase, open_redshift

LOGIN = DatabaseLogin("redshift", "dw", 5439, "crm", "etl", "hunter2")


class Client:
    """A connection that notes its statements, and refuses one of them with an error."""

    def __init__(self, refused: str = "", error: Exception | None = None) -> None:
        self.said: list[str] = []
        self._refused, self._error = refused, error
        self.description, self.rowcount = [("id",)], 2

    def cursor(self) -> Client:
        return self

    def execute(self, sql: str) -> None:
        self.said.append(sql)
        if self._error is not None and sql == self._refused:
            raise self._error

    def fetchall(self) -> tuple[list[int], ...]:
        return ([1], [2])

    def close(self) -> None:
        self.said.append("close")


def refused(message: str, code: str = "42601") -> ProgrammingError:
    return ProgrammingError({"S": "ERROR", "C": code, "M": message})


def test_rows_are_tuples_and_changes_are_counted() -> None:
    database = RedshiftDatabase(LOGIN, Client())

    assert database.rows("SELECT id FROM a") == [(1,), (2,)]
    assert database.execute("DELETE FROM a") == 2


def test_transaction_is_committed_at_its_end() -> None:
    client = Client()
    with RedshiftDatabase(LOGIN, client) as database, database.transaction():
        database.execute("LOCK TABLE a")

    assert client.said == ["BEGIN", "LOCK TABLE a", "COMMIT", "close"]


def test_refused_statement_rolls_back_and_shows_no_password() -> None:
    client = Client("COPY a", refused("no right for hunter2"))
    database = RedshiftDatabase(LOGIN, client)

    with pytest.raises(DatabaseError, match="refused a statement: no right for") as caught, database.transaction():
        database.execute("COPY a")

    assert client.said == ["BEGIN", "COPY a", "ROLLBACK"]
    assert (caught.value.code, caught.value.is_lost) == ("42601", False)
    assert "hunter2" not in str(caught.value)


def test_transaction_that_gave_way_to_another_one_has_the_number_of_redshift() -> None:
    database = RedshiftDatabase(LOGIN, Client("COMMIT", refused("1023", "XX000")))

    with pytest.raises(DatabaseError, match="serializable isolation") as caught, database.transaction():
        pass

    assert caught.value.code == redshift.SERIALIZATION


@pytest.mark.parametrize("error", [InterfaceError("connection is closed"), ConnectionAbortedError("gone")])
def test_broken_connection_is_told_and_not_used_again(error: Exception) -> None:
    client = Client("COMMIT", error)
    database = RedshiftDatabase(LOGIN, client)

    with pytest.raises(DatabaseError) as caught, database.transaction():
        pass
    with pytest.raises(DatabaseError, match="broke before"):
        database.rows("SELECT 1")

    assert caught.value.is_lost
    assert client.said == ["BEGIN", "COMMIT"]


def test_server_that_does_not_answer_is_named_without_the_password() -> None:
    login = DatabaseLogin("redshift", "127.0.0.1", 1, "crm", "etl", "hunter2")

    with pytest.raises(DatabaseError, match="can't be entered as user 'etl'") as caught:
        open_redshift(login)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [({}, {}), ({"sslmode": "verify-full"}, {"sslmode": "verify-full"}), ({"ssl": "false"}, {"ssl": False})],
)
def test_login_says_how_the_client_encrypts(
    parameters: dict[str, str], arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def connect(**arguments: Any) -> Client:
        given.update(arguments)
        return Client()

    monkeypatch.setattr("redshift_connector.connect", connect)
    with open_redshift(DatabaseLogin("redshift", "dw", 5439, "crm", "etl", "hunter2", parameters)):
        place = {"host": "dw", "port": 5439, "database": "crm", "user": "etl", "password": "hunter2"}

        assert given == {**place, **arguments}
