"""What no publish could bring into a table is refused before the commit (SINK-4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import DatabaseError, OptionError, PublishError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.jdbc.columns import FrameColumns
from airflow_bookmarks.sinks.jdbc.loading import resolved
from airflow_bookmarks.store.blobs import BlobStore
from tests.databases.servers import new_database
from tests.sinks.jdbc.table_ground import TableGround
from tools.servers import DatabaseServer

_LONG = "a" * 70


@pytest.fixture
def pg(postgresql_server: DatabaseServer) -> Iterator[DatabaseLogin]:
    with new_database(postgresql_server) as login:
        yield login


@pytest.fixture
def maria(mariadb_server: DatabaseServer) -> Iterator[DatabaseLogin]:
    with new_database(mariadb_server) as login:
        yield login


@pytest.mark.parametrize("is_there", [True, False])
def test_frame_without_columns_is_refused(database_login: DatabaseLogin, blobs: BlobStore, is_there: bool) -> None:
    ground = TableGround(database_login, blobs, columns=[("id", "int")], is_there=is_there)
    with (
        ground.opened() as database,
        pytest.raises(OptionError, match=r"has no columns.*Nothing was written or committed"),
    ):
        FrameColumns("output 'out'", ground.target, ()).matched(database, is_case_sensitive=False)


@pytest.mark.parametrize(("table", "column"), [(_LONG, "id"), ("dim", _LONG), ("dim", "é" * 32)])
def test_names_that_postgresql_would_cut_off_are_refused(
    pg: DatabaseLogin, blobs: BlobStore, table: str, column: str
) -> None:
    ground = TableGround(pg, blobs, name=table, columns=[(column, "int")], is_there=False)
    with pytest.raises(OptionError, match=r"keeps 63 bytes of a name: it would cut off '[aé]+'.*Choose shorter names"):
        ground.staged_output(RunKey(1, 1), [(1,)])


@pytest.mark.parametrize("table", [_LONG, "blank at the end "])
def test_name_that_no_table_of_mariadb_has_is_refused(maria: DatabaseLogin, blobs: BlobStore, table: str) -> None:
    ground = TableGround(maria, blobs, name=table, columns=[("id", "int")], is_there=False)
    with pytest.raises(DatabaseError, match="Incorrect table name"):
        ground.staged_output(RunKey(1, 1), [(1,)])


def test_target_in_no_database_is_refused(maria: DatabaseLogin, blobs: BlobStore) -> None:
    ground = TableGround(maria, blobs, columns=[("id", "int")], is_there=False, of_schema="not_there")
    with pytest.raises(PublishError, match=r"no database 'not_there' for .*Nothing was written or committed"):
        ground.staged_output(RunKey(1, 1), [(1,)])


def test_table_without_a_schema_is_the_one_that_the_search_path_leads_to(pg: DatabaseLogin) -> None:
    """Else its rows would go to a new table of that name, which whoever reads the other one never sees."""
    with open_database(pg) as admin:
        for statement in ("CREATE SCHEMA app", "CREATE TABLE public.dim (id int)"):
            admin.execute(statement)
        admin.execute(f"ALTER DATABASE {pg.database} SET search_path = app, public")
    with open_database(pg) as database:
        found = [resolved(database, SinkTable(None, name)) for name in ("dim", "new")]
        assert list(map(str, found)) == ["public.dim", "app.new"]
        database.execute("CREATE TABLE app.dim (id int)")
        assert str(resolved(database, SinkTable(None, "dim"))) == "app.dim"


def test_view_of_a_table_without_transactions_is_refused(maria: DatabaseLogin, blobs: BlobStore) -> None:
    """What was published until an error would stay, and come once more with the next publish."""
    ground = TableGround(maria, blobs, name="seen", columns=[("id", "int")], is_there=False)
    for statement in (
        "CREATE TABLE `ba``se` (id int) ENGINE=MyISAM",
        "CREATE VIEW within AS SELECT b.id FROM `ba``se` b",
        "CREATE VIEW seen AS SELECT id FROM within",
    ):
        ground.execute(statement)
    with pytest.raises(OptionError, match=r"seen selects from .*ba`se.*, which has the engine MyISAM.*ENGINE=InnoDB"):
        ground.staged_output(RunKey(1, 1), [(1,)])
    ground.execute("ALTER TABLE `ba``se` ENGINE=InnoDB")
    ground.staged_output(RunKey(1, 1), [(1,)])
