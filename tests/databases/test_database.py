"""Statements and transactions in PostgreSQL, MariaDB and SQLite that run here."""

from __future__ import annotations

import socket
import sqlite3
import traceback
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pymysql
import pytest

from airflow_bookmarks.core.errors import DatabaseError, MisuseError, OptionError
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from tests.databases.servers import login_to, new_database
from tools.servers import DatabaseServer, free_port

ODD_TEXTS = [
    "100 %",
    "%s %(name)s %% %d",
    ":name ::text",
    "it's",
    'say "hello"',
    "back\\slash \\n \\' \\",
    "`grave` $1 $$ ? ??",
    "Grüße, 東京 🚲",
    "two\nlines\tand a tab",
    "-- no comment; /* none */",
]


def quoted(text: str) -> str:
    """Return a text as a literal of standard SQL."""
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture
def database(database_login: DatabaseLogin) -> Iterator[Database]:
    """Open an empty database of each kind."""
    with open_database(database_login) as database:
        yield database


@pytest.fixture
def other(database_login: DatabaseLogin) -> Iterator[Database]:
    """Open the same database once more."""
    with open_database(database_login) as database:
        yield database


@pytest.fixture
def notes(database: Database) -> Database:
    """Make an empty table `notes`, with a key."""
    database.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)")
    return database


def ids(database: Database) -> list[int]:
    return [number for (number,) in database.rows("SELECT id FROM notes ORDER BY id")]


# ---- statements


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_literal_passes_unharmed(database: Database, text: str) -> None:
    assert database.rows(f"SELECT {quoted(text)}") == [(text,)]


def test_stored_text_is_the_literal(notes: Database) -> None:
    for number, text in enumerate(ODD_TEXTS):
        notes.execute(f"INSERT INTO notes VALUES ({number}, {quoted(text)})")

    assert [text for (text,) in notes.rows("SELECT note FROM notes ORDER BY id")] == ODD_TEXTS
    assert notes.rows("SELECT id FROM notes WHERE note LIKE '%\U0001f6b2'") == [(ODD_TEXTS.index(ODD_TEXTS[7]),)]


def test_statement_says_how_many_rows_it_changed(notes: Database) -> None:
    assert notes.execute("INSERT INTO notes VALUES (1, 'a'), (2, 'b'), (3, 'c')") == 3
    assert notes.execute("UPDATE notes SET note = 'x' WHERE id < 3") == 2
    assert notes.execute("UPDATE notes SET note = 'x' WHERE id < 3") == 2  # matched, though nothing is another
    assert notes.execute("DELETE FROM notes WHERE id > 7") == 0


def test_statement_without_rows_returns_none(notes: Database) -> None:
    assert notes.rows("SELECT id FROM notes") == []
    assert notes.rows("INSERT INTO notes VALUES (1, 'a')") == []


def test_number_of_an_insert_from_a_select_is_returned(notes: Database) -> None:
    notes.execute("INSERT INTO notes VALUES (1, 'a'), (2, 'b')")

    assert notes.execute("INSERT INTO notes SELECT id + 10, note FROM notes") == 2


def test_refused_statement_is_one_sentence_with_the_code(notes: Database) -> None:
    notes.execute("INSERT INTO notes VALUES (1, 'a')")

    with pytest.raises(DatabaseError, match=r"refused a statement: .*The statement changed nothing") as raised:
        notes.execute("INSERT INTO notes VALUES (1, 'a')")

    codes = {"postgresql": "23505", "mariadb": "1062", "sqlite": "SQLITE_CONSTRAINT_PRIMARYKEY"}
    assert raised.value.code == codes[notes.dialect]
    assert not raised.value.is_lost
    assert "\n" not in str(raised.value)
    assert notes.name in str(raised.value)


def test_values_of_a_refused_statement_are_not_shown(database: Database) -> None:
    card = "-".join(["4000", "0000", "0000", "0002"])  # not as it stands in the lines that a traceback shows

    with pytest.raises(DatabaseError) as raised:
        database.execute(f"INSERT INTO absent VALUES ('{card}')")

    assert card not in shown_by(raised.value)


def test_connection_goes_on_after_a_refused_statement(notes: Database) -> None:
    with pytest.raises(DatabaseError):
        notes.rows("SELECT absent FROM notes")

    assert notes.execute("INSERT INTO notes VALUES (1, 'a')") == 1


def test_value_that_python_cannot_hold_is_an_error_of_the_database(postgresql_server: DatabaseServer) -> None:
    with new_database(postgresql_server) as login, open_database(login) as database:
        with pytest.raises(DatabaseError, match="timestamp too large"):
            database.rows("SELECT CAST('infinity' AS timestamptz)")

        assert database.rows("SELECT CAST(CAST('infinity' AS timestamptz) AS text)") == [("infinity",)]


# ---- sessions


def test_session_of_postgresql_is_in_utc_with_exact_text(postgresql_server: DatabaseServer) -> None:
    with new_database(postgresql_server) as login:
        with open_database(login) as admin:
            role = f"ALTER ROLE {login.user} IN DATABASE {login.database} SET"
            admin.execute(f"{role} timezone = 'America/New_York'")
            admin.execute(f"{role} datestyle = 'SQL, DMY'")
            admin.execute(f"{role} extra_float_digits = -5")
            admin.execute(f"{role} standard_conforming_strings = off")
            admin.execute(f"{role} intervalstyle = 'sql_standard'")
        with open_database(login) as database:
            (row,) = database.rows(
                "SELECT CAST(CAST('2026-11-01 00:30:00.123456-05' AS timestamptz) AS text), "
                "CAST(CAST('2026-02-01' AS date) AS text), CAST(CAST(0.1 + 0.2 AS float8) AS text), 'a\\b', "
                "CAST(CAST('1 day 2 hours' AS interval) AS text)"
            )

    assert row == ("2026-11-01 05:30:00.123456+00", "2026-02-01", "0.3", "a\\b", "P1DT2H")


def test_session_of_mariadb_is_in_utc_and_strict(mariadb_server: DatabaseServer) -> None:
    with new_database(mariadb_server) as login, open_database(login) as admin:
        before = admin.rows("SELECT @@GLOBAL.time_zone, @@GLOBAL.sql_mode")[0]
        try:
            admin.execute("SET GLOBAL time_zone = '-05:00'")
            admin.execute("SET GLOBAL sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'")
            with open_database(login) as database:
                assert database.rows("SELECT FROM_UNIXTIME(0)") == [(datetime(1970, 1, 1),)]  # noqa: DTZ001
                assert database.rows("SELECT \"text\", 'a\\b'") == [("text", "a\\b")]
                database.execute("CREATE TABLE short (a VARCHAR(2))")
                with pytest.raises(DatabaseError, match="Data too long"):
                    database.execute("INSERT INTO short VALUES ('abc')")
        finally:
            admin.execute(f"SET GLOBAL time_zone = {quoted(before[0])}")
            admin.execute(f"SET GLOBAL sql_mode = {quoted(before[1])}")


def test_session_of_mariadb_gets_all_rows_and_may_change_them(mariadb_server: DatabaseServer) -> None:
    """A limit of the server would hide rows, columns of a table and stage tables, and no error would say so."""
    with new_database(mariadb_server) as login, open_database(login) as admin:
        admin.execute("SET GLOBAL sql_select_limit = 2")
        admin.execute("SET GLOBAL sql_safe_updates = 1")
        try:
            with open_database(login) as database:
                database.execute("CREATE TABLE many AS SELECT seq FROM seq_1_to_5")
                assert len(database.rows("SELECT seq FROM many")) == 5
                assert database.execute("DELETE FROM many") == 5
        finally:
            admin.execute("SET GLOBAL sql_select_limit = DEFAULT")
            admin.execute("SET GLOBAL sql_safe_updates = DEFAULT")


# ---- transactions


def test_statement_outside_of_a_transaction_is_seen_by_others_at_once(notes: Database, other: Database) -> None:
    notes.execute("INSERT INTO notes VALUES (1, 'a')")

    assert ids(other) == [1]


def test_transaction_is_seen_by_others_at_its_end(notes: Database, other: Database) -> None:
    with notes.transaction():
        notes.execute("INSERT INTO notes VALUES (1, 'a')")
        notes.execute("INSERT INTO notes VALUES (2, 'b')")
        assert ids(notes) == [1, 2]
        assert ids(other) == []

    assert ids(other) == [1, 2]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_exception_rolls_back_and_passes_through(notes: Database, other: Database, error: type[BaseException]) -> None:
    def fail() -> None:
        with notes.transaction():
            notes.execute("INSERT INTO notes VALUES (1, 'a')")
            raise error("stop")

    with pytest.raises(error, match="stop"):
        fail()

    assert ids(other) == []
    assert notes.execute("INSERT INTO notes VALUES (2, 'b')") == 1  # in autocommit again
    assert ids(other) == [2]


def test_refused_statement_rolls_the_transaction_back(notes: Database, other: Database) -> None:
    def fail() -> None:
        with notes.transaction():
            notes.execute("INSERT INTO notes VALUES (1, 'a')")
            notes.execute("INSERT INTO notes VALUES (1, 'b')")

    with pytest.raises(DatabaseError, match="The transaction is rolled back"):
        fail()

    assert ids(other) == []


def test_refused_statement_that_is_caught_does_not_let_the_rest_be_committed(notes: Database, other: Database) -> None:
    def carry_on() -> None:
        with notes.transaction():
            notes.execute("INSERT INTO notes VALUES (1, 'a')")
            with pytest.raises(DatabaseError):
                notes.execute("INSERT INTO notes VALUES (1, 'b')")

    with pytest.raises(DatabaseError, match="a transaction ends with a statement that was refused"):
        carry_on()

    assert ids(other) == []
    with notes.transaction():
        notes.execute("INSERT INTO notes VALUES (2, 'b')")
    assert ids(other) == [2]


def test_transaction_within_another_is_refused(notes: Database, other: Database) -> None:
    def nest() -> None:
        with notes.transaction():
            notes.execute("INSERT INTO notes VALUES (1, 'a')")
            with notes.transaction():
                pass

    with pytest.raises(MisuseError, match="within another one"):
        nest()

    assert ids(other) == []


def test_closed_database_leaves_nothing_of_a_transaction(notes: Database, database_login: DatabaseLogin) -> None:
    leaving = open_database(database_login)
    transaction = leaving.transaction()
    transaction.__enter__()
    leaving.execute("INSERT INTO notes VALUES (1, 'a')")

    leaving.close()

    assert ids(notes) == []
    assert notes.execute("INSERT INTO notes VALUES (1, 'b')") == 1


def test_deferred_constraint_is_an_error_of_the_commit(postgresql_server: DatabaseServer) -> None:
    with new_database(postgresql_server) as login, open_database(login) as database:
        database.execute("CREATE TABLE notes (id INTEGER UNIQUE DEFERRABLE INITIALLY DEFERRED)")

        def insert_twice() -> None:
            with database.transaction():
                database.execute("INSERT INTO notes VALUES (1), (1)")

        with pytest.raises(DatabaseError, match="The transaction is rolled back") as raised:
            insert_twice()

        assert raised.value.code == "23505"
        assert ids(database) == []


# ---- connections that break


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    """Run a database server."""
    server: DatabaseServer = request.getfixturevalue(f"{request.param}_server")
    return server


def test_broken_connection_is_told_and_not_made_again(server: DatabaseServer) -> None:
    with new_database(server) as login, open_database(login) as database, open_database(login) as other:
        other.execute("CREATE TABLE notes (id INTEGER)")
        if server.dialect == "postgresql":
            kill = f"SELECT pg_terminate_backend({database.rows('SELECT pg_backend_pid()')[0][0]})"
        else:
            kill = f"KILL {database.rows('SELECT connection_id()')[0][0]}"

        def write() -> None:
            with database.transaction():
                database.execute("INSERT INTO notes VALUES (1)")
                other.execute(kill)
                database.execute("INSERT INTO notes VALUES (2)")

        with pytest.raises(DatabaseError, match="whether the last statement took effect is not known") as raised:
            write()
        assert raised.value.is_lost
        with pytest.raises(DatabaseError, match=r"the connection broke before\. The statement was not run"):
            database.execute("INSERT INTO notes VALUES (3)")
        assert ids(other) == []


# ---- who is let in


def shown_by(error: BaseException) -> str:
    """Return all that an error shows of itself."""
    return f"{error} {error!r} {''.join(traceback.format_exception(error))}"


def test_refused_connection_is_one_sentence(server: DatabaseServer) -> None:
    login = replace(login_to(server, "crm"), port=free_port())

    with pytest.raises(DatabaseError, match=r"can't be entered as user 'tester': .*refused") as raised:
        open_database(login)

    assert "\n" not in str(raised.value)
    assert "Nothing was read or changed" in str(raised.value)
    assert server.password not in shown_by(raised.value)


def test_wrong_password_is_one_sentence_without_it(server: DatabaseServer) -> None:
    login = replace(login_to(server, server.database), password="hunter2")

    with pytest.raises(DatabaseError, match="can't be entered as user 'tester': ") as raised:
        open_database(login)

    assert "\n" not in str(raised.value)
    assert "hunter2" not in shown_by(raised.value)


def test_url_without_a_login_says_how_one_is_given(
    postgresql_server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgresql_server  # PyMySQL enters as the user of the system, whom a server may let in
    for name in ("PGUSER", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    url = login_to(server, server.database).jdbc_url

    with pytest.raises(
        DatabaseError, match=r"can't be entered: .*Nothing was read or changed\. There is no user"
    ) as raised:
        open_database(EnvironmentAccess().login(DatabaseAddress.parse(url)))

    assert "\n" not in str(raised.value)
    assert "give conn:<id> in place of the URL" in str(raised.value)
    assert "#credentials" in str(raised.value)


def test_wrong_login_is_not_told_how_one_is_given(server: DatabaseServer) -> None:
    with pytest.raises(DatabaseError) as raised:
        open_database(replace(login_to(server, server.database), password="hunter2"))

    assert "conn:<id>" not in str(raised.value)


def test_absent_database_is_told(server: DatabaseServer) -> None:
    with pytest.raises(DatabaseError, match="absent_one"):
        open_database(login_to(server, "absent_one"))


def test_unknown_host_is_told(server: DatabaseServer) -> None:
    with pytest.raises(DatabaseError, match=r"no-such-host\.invalid:.* can't be entered") as raised:
        open_database(replace(login_to(server, "crm"), host="no-such-host.invalid"))

    assert server.password not in shown_by(raised.value)


def test_tls_that_the_server_does_not_have_is_not_left_out(server: DatabaseServer) -> None:
    parameters = {"postgresql": {"sslmode": "require"}, "mariadb": {"sslMode": "trust"}}[server.dialect]

    with pytest.raises(DatabaseError, match="SSL"):
        open_database(replace(login_to(server, server.database), parameters=parameters))


def test_earlier_pymysql_which_leaves_tls_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pymysql, "VERSION", (1, 1, 2, "final", 1))

    with pytest.raises(OptionError, match=r"Install PyMySQL 1\.2 or later"):
        open_database(DatabaseLogin("mariadb", "db", 3306, "crm", parameters={"sslMode": "trust"}))


def test_password_of_any_letters_is_taken(server: DatabaseServer) -> None:
    user, password = f"u{uuid.uuid4().hex[:12]}", "p@ss:/?#%41 \\ ' \" žluť 東"
    with open_database(login_to(server, server.database)) as admin:
        if server.dialect == "postgresql":
            admin.execute(f"CREATE ROLE {user} LOGIN PASSWORD {quoted(password)}")
        else:
            admin.execute(f"CREATE USER {user}@'%' IDENTIFIED BY {quoted(password)}")
            admin.execute(f"GRANT SELECT ON mysql.* TO {user}@'%'")
        with open_database(replace(login_to(server, server.database), user=user, password=password)) as database:
            assert database.rows("SELECT 1") == [(1,)]
        admin.execute(f"DROP ROLE {user}" if server.dialect == "postgresql" else f"DROP USER {user}@'%'")


def test_server_that_never_answers_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        login = DatabaseLogin("postgresql", "127.0.0.1", port, "crm", "etl", parameters={"connect_timeout": "2"})

        with pytest.raises(DatabaseError, match="timeout"):
            open_database(login)


# ---- SQLite


def test_absent_file_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "absent.db"

    with pytest.raises(DatabaseError, match="unable to open database file"):
        open_database(DatabaseLogin("sqlite", None, None, str(path)))

    assert not path.exists()


def test_file_with_an_odd_name_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "50% of ü?#&.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (id INTEGER)")

    with open_database(DatabaseLogin("sqlite", None, None, str(path))) as database:
        assert ids(database) == []


def test_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "crm.db"
    path.write_text("no database, but a text that is longer than a header " * 20)

    with (
        open_database(DatabaseLogin("sqlite", None, None, str(path))) as database,
        pytest.raises(DatabaseError, match="file is not a database"),
    ):
        database.rows("SELECT * FROM notes")
