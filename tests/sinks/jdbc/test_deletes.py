"""The delete set of an upsert: its keys go from the table in the publish, or lose against a newer row (SINK-8)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.upsert import DELETED, Upsert
from airflow_bookmarks.core.errors import DatabaseError, OptionError, PublishError, SourceError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.store.blobs import BlobStore
from tests.databases.servers import new_database
from tests.sinks.jdbc.table_ground import Row, TableGround
from tests.sinks.jdbc.test_publish import publish, token_of
from tools.servers import DatabaseServer

COLUMNS = (("id", "int"), ("name", "varchar(20) NOT NULL"), ("version", "int"))


@pytest.fixture
def ordered(database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
    return ground_of(database_login, blobs, Upsert(("id",), ("version",), has_deletes=True))


@pytest.fixture
def unordered(database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
    return ground_of(database_login, blobs, Upsert(("id",), has_deletes=True))


def ground_of(login: DatabaseLogin, blobs: BlobStore, upsert: Upsert, key: Sequence[str] = ("id",)) -> TableGround:
    ground = TableGround(login, blobs, columns=COLUMNS, key=key, upsert=upsert)
    values = "(1, 'old', 1), (2, 'old', 1), (3, 'old', 1)"
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES {values}")
    return ground


@pytest.fixture
def mariadb_login(mariadb_server: DatabaseServer) -> Iterator[DatabaseLogin]:
    with new_database(mariadb_server) as login:
        yield login


def gone(*keys: tuple[int | None, int | None]) -> list[Row]:
    """Return rows of a delete set, by key and version."""
    return [(key, None, version) for key, version in keys]


def test_keys_of_the_delete_set_go_and_other_rows_come(
    unordered: TableGround, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "airflow_bookmarks")
    output = unordered.staged_output(RunKey(1, 1), [(2, "new", 2), (4, "new", 2)], gone=gone((1, None), (99, None)))
    assert publish(unordered, output) == 2
    assert unordered.all_rows() == [(2, "new", 2), (3, "old", 1), (4, "new", 2)]
    assert "1 row deleted in conn:dw#" in caplog.text


def test_the_same_publish_twice_leaves_one_result_and_deletes_nothing_later(unordered: TableGround) -> None:
    output = unordered.staged_output(RunKey(1, 1), [(2, "new", 2)], gone=gone((1, None)))
    assert publish(unordered, output) == 1
    unordered.execute(f"INSERT INTO {unordered.sql(unordered.table)} VALUES (1, 'again', 5)")
    assert publish(unordered, output) == 1
    assert unordered.all_rows() == [(1, "again", 5), (2, "new", 2), (3, "old", 1)]


def test_the_same_increment_in_two_runs_leaves_one_result(ordered: TableGround) -> None:
    for fence in (1, 2):
        output = ordered.staged_output(RunKey(fence, fence), [(1, "a", 2), (4, "b", 2)], gone=gone((1, 3), (2, 2)))
        publish(ordered, output)
        assert ordered.all_rows() == [(3, "old", 1), (4, "b", 2)]


@pytest.mark.parametrize(
    ("rows", "deleted", "stays"),
    [
        ([(1, "new", 5)], [(1, 4)], True),
        ([(1, "new", 4)], [(1, 5)], False),
        ([(1, "new", 5)], [(1, 5)], True),  # a tie: it is there
        ([(1, "new", 5)], [(1, None)], True),  # NULL is the least
        ([(1, "new", None)], [(1, 5)], False),
        ([(1, "new", None)], [(1, None)], True),
        ([(1, "less", 2), (1, "new", 9), (1, "more", 8)], [(1, 3), (1, 7)], True),
        ([(1, "less", 2), (1, "new", 8)], [(1, 9), (1, 1)], False),
    ],
)
def test_greatest_order_decides_between_row_and_delete_of_a_key(
    ordered: TableGround, rows: list[Row], deleted: list[tuple[int, int | None]], stays: bool
) -> None:
    publish(ordered, ordered.staged_output(RunKey(1, 1), rows, gone=gone(*deleted)))
    kept = [row for row in ordered.all_rows() if row[0] == 1]
    assert [row[1] for row in kept] == (["new"] if stays else [])
    assert len(ordered.all_rows()) == 2 + stays


def test_row_older_than_the_target_is_deleted_all_the_same(ordered: TableGround) -> None:
    publish(ordered, ordered.staged_output(RunKey(1, 1), [], gone=gone((1, -7))))
    assert [row[0] for row in ordered.all_rows()] == [2, 3]


@pytest.mark.parametrize(
    ("rows", "deleted", "why"),
    [
        ([(1, "a", 1)], [(1, None)], "1 key .*several rows, or a row and a delete,.*order_by="),
        ([(1, "a", 1), (1, "b", 1)], [(2, None)], "1 key .*several rows, or a row and a delete,"),
        ([(4, "a", 1)], [(None, None)], "1 row for .* or its delete set has NULL in a key"),
    ],
)
def test_delete_set_that_leaves_it_open_what_counts_is_refused_before_the_commit(
    unordered: TableGround, rows: list[Row], deleted: list[tuple[int | None, int | None]], why: str
) -> None:
    with pytest.raises(PublishError, match=why):
        unordered.staged_output(RunKey(1, 1), rows, gone=gone(*deleted))
    assert (len(unordered.all_rows()), token_of(unordered)) == (3, (0, 0))


def test_key_that_is_deleted_twice_is_deleted(unordered: TableGround) -> None:
    publish(unordered, unordered.staged_output(RunKey(1, 1), [], gone=gone((1, None), (1, None), (2, None))))
    assert [row[0] for row in unordered.all_rows()] == [3]


def test_null_key_of_the_delete_set_at_the_publish_deletes_nothing(ordered: TableGround) -> None:
    output = ordered.staged_output(RunKey(1, 1), [(4, "a", 1)], gone=gone((1, 1)))
    stage = ordered.sql(SinkTable.parse(output.entry.place))
    ordered.execute(f"UPDATE {stage} SET id = NULL WHERE {DELETED} = 1")
    with pytest.raises(SourceError, match="has NULL in a key"):
        publish(ordered, output)
    assert (len(ordered.all_rows()), token_of(ordered)) == (3, (0, 0))


def test_empty_frame_and_empty_delete_set_change_nothing(ordered: TableGround) -> None:
    assert publish(ordered, ordered.staged_output(RunKey(1, 1), [])) == 0
    assert len(ordered.all_rows()) == 3


def test_deleted_row_gives_its_other_unique_value_to_a_new_one(unordered: TableGround) -> None:
    unordered.execute(f"UPDATE {unordered.sql(unordered.table)} SET name = 'taken' WHERE id = 1")
    unordered.execute(f"UPDATE {unordered.sql(unordered.table)} SET name = 'other' WHERE id = 2")
    unordered.make_unique("name")
    publish(unordered, unordered.staged_output(RunKey(1, 1), [(4, "taken", 1)], gone=gone((1, None))))
    assert [row[:2] for row in unordered.all_rows()] == [(2, "other"), (3, "old"), (4, "taken")]


def test_several_keys_are_compared_together(database_login: DatabaseLogin, blobs: BlobStore) -> None:
    keys = ("id", "name")
    ground = ground_of(database_login, blobs, Upsert(keys, has_deletes=True), key=keys)
    output = ground.staged_output(RunKey(1, 1), [(1, "new", 2)], gone=[(1, "old", None), (2, "new", None)])
    publish(ground, output)
    assert [row[:2] for row in ground.all_rows()] == [(1, "new"), (2, "old"), (3, "old")]


def test_row_that_others_refer_to_stops_the_publish_and_stays_staged(ordered: TableGround) -> None:
    child = ordered.sql(ordered.table.beside("child"))
    reference = "main.dim" if ordered.login.dialect == "sqlite" else ordered.sql(ordered.table)
    reference = "dim" if ordered.login.dialect == "sqlite" else reference
    ordered.execute(f"CREATE TABLE {child} (dim_id int, FOREIGN KEY (dim_id) REFERENCES {reference} (id))")
    ordered.execute(f"INSERT INTO {child} VALUES (1)")
    output = ordered.staged_output(RunKey(1, 1), [(4, "new", 1)], gone=gone((1, 5), (2, 5)))
    why = r"(?i)foreign key.*Nothing of it was published to .*, and its rows stay in the table .*_bm_"
    with pytest.raises(SourceError, match=why):
        publish(ordered, output)
    assert ([row[0] for row in ordered.all_rows()], token_of(ordered)) == ([1, 2, 3], (0, 0))
    ordered.execute(f"DELETE FROM {child}")
    assert publish(ordered, output) == 1
    assert [row[0] for row in ordered.all_rows()] == [3, 4]


def test_row_that_is_written_again_is_updated_and_not_deleted_first(ordered: TableGround) -> None:
    child = ordered.sql(ordered.table.beside("child"))
    reference = "dim" if ordered.login.dialect == "sqlite" else ordered.sql(ordered.table)
    fk = f"FOREIGN KEY (dim_id) REFERENCES {reference} (id) ON DELETE CASCADE"
    ordered.execute(f"CREATE TABLE {child} (dim_id int, {fk})")
    ordered.execute(f"INSERT INTO {child} VALUES (1), (2)")
    publish(ordered, ordered.staged_output(RunKey(1, 1), [(1, "new", 6)], gone=gone((1, 5), (2, 5))))
    assert ordered.rows(f"SELECT dim_id FROM {child}") == [(1,)]


def test_target_that_is_made_has_no_column_of_the_delete_set(database_login: DatabaseLogin, blobs: BlobStore) -> None:
    upsert = Upsert(("id",), has_deletes=True)
    ground = TableGround(database_login, blobs, columns=COLUMNS, upsert=upsert, is_there=False)
    publish(ground, ground.staged_output(RunKey(1, 1), [("1", "a", "1")], gone=[("2", None, None)]))
    assert ground.rows(f"SELECT * FROM {ground.sql(ground.table)}") == [("1", "a", "1")]
    publish(ground, ground.staged_output(RunKey(2, 2), [("3", "c", "1")], gone=[("1", None, None)]))
    assert ground.rows(f"SELECT * FROM {ground.sql(ground.table)}") == [("3", "c", "1")]


def test_zombie_deletes_nothing(ordered: TableGround) -> None:
    late = ordered.staged_output(RunKey(1, 1), [], gone=gone((1, 9)))
    publish(ordered, ordered.staged_output(RunKey(2, 2), [(1, "new", 2)]))
    assert publish(ordered, late) == 0
    assert len(ordered.all_rows()) == 3


def test_frame_with_the_column_of_the_delete_set_is_refused(ordered: TableGround) -> None:
    with pytest.raises(OptionError, match=f"adds the column '{DELETED}'.*Nothing was written or committed"):
        ordered.staged_output(RunKey(1, 1), [], ["id", DELETED])
    assert ordered.stage_tables() == []


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_staging_waits_for_no_row_that_another_writer_has_locked(
    request: pytest.FixtureRequest, server: str, blobs: BlobStore
) -> None:
    with new_database(request.getfixturevalue(f"{server}_server")) as login:
        ground = ground_of(login, blobs, Upsert(("id",), ("version",), has_deletes=True))
        with ground.opened() as another, another.transaction():
            another.execute(f"UPDATE {ground.sql(ground.table)} SET version = version + 1")
            output = ground.staged_output(RunKey(1, 1), [(1, "new", 9)], gone=gone((2, 9)))
        assert publish(ground, output) == 1
        assert [row[0] for row in ground.all_rows()] == [1, 3]


def test_right_to_delete_shows_before_the_commit(postgresql_server: DatabaseServer, blobs: BlobStore) -> None:
    with new_database(postgresql_server) as login:
        ground = ground_of(login, blobs, Upsert(("id",), has_deletes=True))
        for statement in (
            "CREATE ROLE writer LOGIN PASSWORD 'long-enough'",
            "GRANT CREATE ON SCHEMA public TO writer",
            "GRANT SELECT, INSERT, UPDATE ON dim TO writer",
        ):
            ground.execute(statement)
        try:
            as_admin, ground.login = ground.login, replace(login, user="writer", password="long-enough")
            with pytest.raises(DatabaseError, match="permission denied for table dim"):
                ground.staged_output(RunKey(1, 1), [], gone=gone((1, None)))
            ground.login = as_admin
            assert len(ground.all_rows()) == 3
        finally:
            ground.login = login
            for statement in ("DROP OWNED BY writer", "DROP ROLE writer"):
                ground.execute(statement)


@pytest.mark.parametrize("order_by", [("version",), ()])
@pytest.mark.parametrize("old", ["EU", "eu "])
def test_key_that_changes_its_case_or_blanks_stays_in_the_target(
    mariadb_login: DatabaseLogin, blobs: BlobStore, old: str, order_by: tuple[str, ...]
) -> None:
    """A compared table gives the old key as deleted and the new one as a row, with the same version."""
    columns = (("code", "varchar(9)"), ("name", "varchar(9)"), ("version", "int"))
    ground = TableGround(
        mariadb_login, blobs, columns=columns, key=("code",), upsert=Upsert(("code",), order_by, has_deletes=True)
    )
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES ('{old}', 'x', 1)")
    publish(ground, ground.staged_output(RunKey(1, 1), [("eu", "x", 1)], gone=[(old, None, 1)]))
    assert ground.all_rows() == [("eu", "x", 1)]


@pytest.mark.parametrize("has_deletes", [True, False])
def test_row_without_a_time_is_the_oldest_whatever_the_target_makes_of_it(
    mariadb_login: DatabaseLogin, blobs: BlobStore, has_deletes: bool
) -> None:
    own_time = "timestamp NOT NULL DEFAULT current_timestamp ON UPDATE current_timestamp"
    columns = (("id", "int"), ("name", "varchar(9)"), ("at", own_time))
    upsert = Upsert(("id",), ("at",), has_deletes=has_deletes)
    ground = TableGround(mariadb_login, blobs, columns=columns, key=("id",), upsert=upsert)
    rows: list[Row] = [(1, "old", None), (1, "new", "2020-01-01 00:00:00")]
    publish(ground, ground.staged_output(RunKey(1, 1), rows))
    assert [row[1] for row in ground.rows(f"SELECT * FROM {ground.sql(ground.table)}")] == ["new"]
