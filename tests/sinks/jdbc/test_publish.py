"""The publish of a table is one transaction under a token: once, by whoever comes, or not at all (SINK-4, SINK-8)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import (
    DatabaseError,
    FencedError,
    OptionError,
    OutOfBoundsError,
    PublishError,
    SourceError,
)
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.jdbc.loading import TableLoad
from airflow_bookmarks.sinks.jdbc.place import StagePlace
from airflow_bookmarks.sinks.jdbc.sink import JdbcSink
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME, Publisher, stored_output
from tests.databases.servers import new_database
from tests.sinks.jdbc.losing_proxy import losing_the_reply_of
from tests.sinks.jdbc.table_ground import OneLogin, TableGround
from tools.servers import DatabaseServer

ID_NAME = (("id", "int"), ("name", "varchar(20)"))
_STEPS = PublishSteps(lambda: None, lambda: 0.0)


@pytest.fixture
def ground(database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
    return TableGround(database_login, blobs, columns=ID_NAME)


@pytest.fixture
def upserting(database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
    columns = (*ID_NAME, ("version", "int"))
    return TableGround(database_login, blobs, columns=columns, key=["id"], upsert=Upsert(("id",), ("version",)))


def publish(ground: TableGround, output: StoredOutput) -> int:
    """Publish an output; return how many rows its publish reports."""
    publication = ground.sink.prepare(output)
    assert publication is not None
    return publication.publish(lambda what: None, _STEPS)


def token_of(ground: TableGround) -> tuple[int, int]:
    """Return the fence and the number of rows that the token row has."""
    table = ground.sql(ground.table.beside("_bookmarks_tokens"))
    ((fence, rows),) = ground.rows(f"SELECT fence, published_rows FROM {table}")
    return int(fence), int(rows)


# ---- once


def test_repeated_publish_reports_the_rows_of_the_first_and_adds_none(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 3), [(1, "a"), (2, "b")])
    assert [publish(ground, output) for _ in range(3)] == [2, 2, 2]
    assert (ground.all_rows(), token_of(ground)) == ([(1, "a"), (2, "b")], (3, 2))


def test_publish_that_is_repeated_after_the_sweep_needs_no_stage_table(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 3), [(1, "a")])
    publish(ground, output)
    _, root = ground.sink.stage(JOB, RunKey(1, 3), NAME, ground.request)
    assert root is not None
    ground.sink.sweep(JOB, root, 3)
    assert ground.stage_tables() == []
    assert publish(ground, output) == 1
    assert ground.all_rows() == [(1, "a")]


def test_publishers_at_the_same_time_publish_once(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 3), [(1, "a"), (2, "b")])
    barrier = threading.Barrier(4)

    def race(_: int) -> int:
        barrier.wait()
        return publish(ground, output)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(race, range(4))) == [2, 2, 2, 2]
    assert ground.all_rows() == [(1, "a"), (2, "b")]


def test_runs_publish_one_after_the_other(ground: TableGround) -> None:
    for fence in (1, 2, 5):
        publish(ground, ground.staged_output(RunKey(fence, fence), [(fence, "a")]))
    assert (ground.all_rows(), token_of(ground)) == ([(1, "a"), (2, "a"), (5, "a")], (5, 1))


def test_output_without_rows_is_published_as_such(ground: TableGround) -> None:
    assert publish(ground, ground.staged_output(RunKey(1, 1), [])) == 0
    assert token_of(ground) == (1, 0)


# ---- not by a zombie


def test_zombie_whose_token_is_burned_publishes_nothing(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    place = StagePlace.parse(output.entry.place)
    _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    assert place is not None
    assert root is not None
    ground.sink.sweep(JOB, root, 4)
    assert token_of(ground) == (4, 0)
    # Even if it puts its table back.
    ground.execute(f"CREATE TABLE {ground.sql(place.table)} AS SELECT 1 AS id, 'a' AS name")
    assert publish(ground, output) == 0
    assert ground.all_rows() == []


def test_zombie_does_not_replace_what_a_later_run_has_published(upserting: TableGround) -> None:
    late = upserting.staged_output(RunKey(1, 1), [(1, "old", 1)])
    publish(upserting, upserting.staged_output(RunKey(2, 2), [(1, "new", 2)]))
    assert publish(upserting, late) == 0
    assert upserting.all_rows() == [(1, "new", 2)]


def test_run_that_finds_a_later_fence_in_the_token_table_stages_nothing(ground: TableGround) -> None:
    publish(ground, ground.staged_output(RunKey(7, 9), [(1, "a")]))
    with pytest.raises(PublishError, match=r"a run of fence 9 has published .* this one has fence 9.*delete the row"):
        ground.staged_output(RunKey(1, 9), [(2, "b")])
    assert ground.all_rows() == [(1, "a")]


@pytest.mark.parametrize("mode", ["overwrite", "upsert"])
def test_publisher_that_lost_the_job_replaces_nothing(
    database_login: DatabaseLogin, blobs: BlobStore, mode: str
) -> None:
    upsert = Upsert(("id",)) if mode == "upsert" else None
    kind = Mode.APPEND if upsert else Mode.OVERWRITE
    ground = TableGround(database_login, blobs, columns=ID_NAME, key=["id"], mode=kind, upsert=upsert)
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (1, 'old')")
    output = ground.staged_output(RunKey(1, 1), [(1, "new")])
    with pytest.raises(FencedError):
        Publisher(is_fenced=True).publish(ground, output)
    assert (ground.all_rows(), token_of(ground)) == ([(1, "old")], (0, 0))


def test_overwrite_deletes_once(database_login: DatabaseLogin, blobs: BlobStore) -> None:
    ground = TableGround(database_login, blobs, columns=ID_NAME, mode=Mode.OVERWRITE)
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (9, 'old')")
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    assert publish(ground, output) == 1
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (2, 'later')")
    assert publish(ground, output) == 1
    assert ground.all_rows() == [(1, "a"), (2, "later")]


# ---- whole or not at all


def test_broken_constraint_publishes_nothing_and_keeps_what_is_staged(ground: TableGround) -> None:
    ground.make_unique("name")
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (9, 'b')")
    output = ground.staged_output(RunKey(1, 1), [(1, "a"), (2, "b")])
    with pytest.raises(
        SourceError, match=r"(?i)(unique|duplicate).*Nothing of it was published.*stay in the table .*_bm_"
    ):
        publish(ground, output)
    assert (ground.all_rows(), token_of(ground)) == ([(9, "b")], (0, 0))
    ground.execute(f"DELETE FROM {ground.sql(ground.table)}")
    assert publish(ground, output) == 2
    assert ground.all_rows() == [(1, "a"), (2, "b")]


def test_column_that_went_from_the_target_publishes_nothing_and_keeps_what_is_staged(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    ground.execute(f"ALTER TABLE {ground.sql(ground.table)} RENAME COLUMN name TO title")
    with pytest.raises(SourceError, match=r"has no column 'name'.*stay in the table"):
        publish(ground, output)
    ground.execute(f"ALTER TABLE {ground.sql(ground.table)} RENAME COLUMN title TO name")
    assert publish(ground, output) == 1


def test_stage_table_that_is_gone_is_told(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    ground.execute(f"DROP TABLE {ground.sql(SinkTable.parse(output.entry.place))}")
    with pytest.raises(SourceError, match=r"is gone, and its rows were not published.*Somebody else has dropped it"):
        publish(ground, output)
    assert token_of(ground) == (0, 0)


def test_token_row_that_is_gone_stops_the_publish(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 4), [(1, "a")])
    ground.execute(f"DELETE FROM {ground.sql(ground.table.beside('_bookmarks_tokens'))}")
    with pytest.raises(SourceError, match=r"which tells whether the rows .* fence = 4 if they are there"):
        publish(ground, output)
    assert ground.all_rows() == []


def test_connection_that_is_cut_in_the_transaction_leaves_nothing(
    postgresql_server: DatabaseServer, blobs: BlobStore
) -> None:
    with new_database(postgresql_server) as login:
        ground = TableGround(login, blobs, columns=ID_NAME)
        output = ground.staged_output(RunKey(1, 1), [(1, "a"), (2, "b")])
        ground.execute(
            "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
        )
        ground.execute("CREATE TRIGGER cut AFTER INSERT ON dim FOR EACH STATEMENT EXECUTE FUNCTION cut()")
        with pytest.raises(SourceError, match=r"connection broke.*It was asked again: nothing was published to"):
            publish(ground, output)
        assert (ground.all_rows(), token_of(ground)) == ([], (0, 0))
        ground.execute("DROP TRIGGER cut ON dim")
        assert publish(ground, output) == 2
        assert ground.all_rows() == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_lost_reply_of_the_commit_is_asked_for_again(
    request: pytest.FixtureRequest, server: str, blobs: BlobStore
) -> None:
    with new_database(request.getfixturevalue(f"{server}_server")) as login:
        ground = TableGround(login, blobs, columns=ID_NAME)
        output = ground.staged_output(RunKey(1, 1), [(1, "a"), (2, "b")])
        with losing_the_reply_of(b"COMMIT", f"INSERT INTO {ground.sql(ground.table)}".encode(), login) as through:
            ground.sink = JdbcSink(OneLogin(through))
            assert publish(ground, output) == 2
        assert ground.all_rows() == [(1, "a"), (2, "b")]


def test_publish_without_a_login_says_where_it_was_looked_for(
    ground: TableGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_DW", raising=False)
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    ground.sink = JdbcSink(EnvironmentAccess())
    with pytest.raises(
        SourceError, match=r"AIRFLOW_CONN_DW.*Nothing of it was published to conn:dw#.*stay in the table"
    ):
        publish(ground, output)


# ---- upserts


def test_of_several_rows_for_a_key_the_greatest_counts_and_null_is_the_least(upserting: TableGround) -> None:
    upserting.execute(f"INSERT INTO {upserting.sql(upserting.table)} VALUES (1, 'old', 99), (7, 'other', 1)")
    rows = [(1, "a", 1), (1, "c", 10), (1, "b", 9), (2, "n", None), (2, "m", -5), (3, "alone", None)]
    assert publish(upserting, upserting.staged_output(RunKey(1, 1), rows)) == 3
    assert upserting.all_rows() == [(1, "c", 10), (2, "m", -5), (3, "alone", None), (7, "other", 1)]


def test_upsert_leaves_columns_alone_that_the_run_has_not_written(upserting: TableGround) -> None:
    upserting.execute(f"INSERT INTO {upserting.sql(upserting.table)} VALUES (1, 'kept', 1)")
    publish(upserting, upserting.staged_output(RunKey(1, 1), [(1, 2), (2, 1)], ["id", "version"]))
    assert upserting.all_rows() == [(1, "kept", 2), (2, None, 1)]


def test_upsert_of_keys_alone_adds_those_that_are_missing(database_login: DatabaseLogin, blobs: BlobStore) -> None:
    ground = TableGround(database_login, blobs, columns=ID_NAME[:1], key=["id"], upsert=Upsert(("id",)))
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (1)")
    assert publish(ground, ground.staged_output(RunKey(1, 1), [(1,), (2,)])) == 2
    assert ground.all_rows() == [(1,), (2,)]


def test_row_that_shares_another_unique_key_replaces_no_other_row(upserting: TableGround) -> None:
    upserting.make_unique("name")
    upserting.execute(f"INSERT INTO {upserting.sql(upserting.table)} VALUES (1, 'taken', 1)")
    output = upserting.staged_output(RunKey(1, 1), [(2, "taken", 1)])
    with pytest.raises(SourceError, match="Nothing of it was published"):
        publish(upserting, output)
    assert upserting.all_rows() == [(1, "taken", 1)]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([(None, "a", 1), (2, "b", 1)], "1 row for .* has NULL in a key"),
        ([(1, "a", 1), (1, "b", 2), (2, "b", 1)], "1 key .*has several rows.*order_by="),
    ],
)
def test_rows_that_no_key_tells_are_refused_before_the_commit(
    upserting: TableGround, rows: Sequence[tuple[object, ...]], why: str
) -> None:
    upserting.target = replace(upserting.target, upsert=Upsert(("id",)))
    with pytest.raises(PublishError, match=why):
        upserting.staged_output(RunKey(1, 1), rows)


def test_key_that_is_null_when_it_is_published_is_refused(upserting: TableGround) -> None:
    output = upserting.staged_output(RunKey(1, 1), [(1, "a", 1), (2, "b", 1)])
    stage = upserting.sql(SinkTable.parse(output.entry.place))
    if upserting.login.dialect == "mariadb":
        upserting.execute(f"ALTER TABLE {stage} MODIFY id int NULL")
    upserting.execute(f"UPDATE {stage} SET id = NULL WHERE id = 2")
    with pytest.raises(SourceError, match="has NULL in a key"):
        publish(upserting, output)
    assert (upserting.all_rows(), token_of(upserting)) == ([], (0, 0))


# ---- before the commit


def test_what_comes_after_the_seal_finds_no_table(ground: TableGround) -> None:
    output = ground.staged_output(RunKey(1, 1), [(1, "a")])
    place = StagePlace.parse(output.entry.place)
    assert place is not None
    with pytest.raises(DatabaseError):
        ground.execute(f"INSERT INTO {ground.sql(place.loading)} VALUES (2, 'late')")
    assert publish(ground, output) == 1


def test_rows_that_came_twice_are_noticed_before_the_commit(ground: TableGround) -> None:
    output = ground.placed(RunKey(1, 1))
    place, load = StagePlace.parse(output.entry.place), TableLoad("job 'job'", ground.target, ("id", "name"))
    assert place is not None
    with ground.opened() as database:
        load.create(database, place, load.check(database), "job")
        for _ in range(2):
            database.execute(f"INSERT INTO {ground.sql(place.loading)} VALUES (1, 'a')")
        with pytest.raises(PublishError, match=r"has written 1 row .* it has 2\. Nothing was committed"):
            load.seal(database, place, 1)


def test_target_is_made_at_the_first_publish_with_the_key_of_the_upsert(
    database_login: DatabaseLogin, blobs: BlobStore
) -> None:
    ground = TableGround(database_login, blobs, columns=ID_NAME, upsert=Upsert(("id",)), is_there=False)
    first = ground.staged_output(RunKey(1, 1), [("1", "a")])
    assert ground.all_rows() == []
    assert publish(ground, first) == 1
    publish(ground, ground.staged_output(RunKey(2, 2), [("1", "b"), ("2", "c")]))
    assert ground.all_rows() == [("1", "b"), ("2", "c")]


def test_right_that_is_missing_shows_before_the_commit(postgresql_server: DatabaseServer, blobs: BlobStore) -> None:
    with new_database(postgresql_server) as login:
        ground = TableGround(login, blobs, columns=ID_NAME)
        for statement in (
            "CREATE ROLE reader LOGIN PASSWORD 'long-enough'",
            "GRANT CREATE ON SCHEMA public TO reader",
            "GRANT SELECT ON dim TO reader",
        ):
            ground.execute(statement)
        try:
            ground.login = replace(login, user="reader", password="long-enough")
            with pytest.raises(DatabaseError, match="permission denied for table dim"):
                ground.staged_output(RunKey(1, 1), [(1, "a")])
            assert token_of(ground) == (0, 0)
        finally:
            for statement in ("DROP OWNED BY reader", "DROP ROLE reader"):
                with open_database(login) as database:
                    database.execute(statement)


def test_column_that_takes_no_values_shows_before_the_commit(
    postgresql_server: DatabaseServer, blobs: BlobStore
) -> None:
    with new_database(postgresql_server) as login:
        columns = (("id", "int GENERATED ALWAYS AS IDENTITY"), ("name", "text"))
        ground = TableGround(login, blobs, columns=columns)
        with pytest.raises(DatabaseError, match="cannot insert a non-DEFAULT value"):
            ground.staged_output(RunKey(1, 1), [(1, "a")])


def test_key_that_can_t_be_one_shows_before_the_commit(mariadb_server: DatabaseServer, blobs: BlobStore) -> None:
    with new_database(mariadb_server) as login:
        ground = TableGround(login, blobs, columns=ID_NAME, upsert=Upsert(("name",)), is_there=False)
        ground.made_as = "longtext"  # as Spark makes a column of text
        with pytest.raises(DatabaseError, match="key specification without a key length"):
            ground.staged_output(RunKey(1, 1), [("1", "a")])


@pytest.mark.parametrize("kind", ["append", "overwrite", "upsert"])
def test_rehearsal_changes_nothing_and_leaves_no_table(
    database_login: DatabaseLogin, blobs: BlobStore, kind: str
) -> None:
    upsert = Upsert(("id",)) if kind == "upsert" else None
    mode = Mode.OVERWRITE if kind == "overwrite" else Mode.APPEND
    ground = TableGround(database_login, blobs, columns=ID_NAME, key=["id"], mode=mode, upsert=upsert)
    ground.execute(f"INSERT INTO {ground.sql(ground.table)} VALUES (1, 'old')")
    output = ground.staged_output(RunKey(1, 1), [(1, "new")])
    assert ground.all_rows() == [(1, "old")]
    assert ground.stage_tables() == [SinkTable.parse(output.entry.place).name]


def test_upsert_without_a_unique_key_is_refused(ground: TableGround) -> None:
    ground.target = replace(ground.target, upsert=Upsert(("id",)))
    with pytest.raises(OptionError, match="whose unique keys are: none"):
        ground.staged_output(RunKey(1, 1), [(1, "a")])
    assert ground.stage_tables() == []


@pytest.mark.parametrize("engine", ["MyISAM", "Aria"])
def test_table_that_can_t_roll_back_is_refused(mariadb_server: DatabaseServer, blobs: BlobStore, engine: str) -> None:
    with new_database(mariadb_server) as login:
        ground = TableGround(login, blobs, columns=ID_NAME)
        ground.execute(f"ALTER TABLE dim ENGINE={engine}")
        with pytest.raises(OptionError, match=f"has the engine {engine}, which has no transactions"):
            ground.staged_output(RunKey(1, 1), [(1, "a")])


def test_drivers_that_make_the_token_table_at_the_same_time_all_find_it(
    database_login: DatabaseLogin, blobs: BlobStore
) -> None:
    ground = TableGround(database_login, blobs, columns=ID_NAME)
    barrier = threading.Barrier(4)

    def stage(number: int) -> StoredOutput:
        place = StagePlace.of(ground.table.schema, StageName.of(Territory("test", f"j{number}"), RunKey(1, 1), NAME))
        load = TableLoad("job", ground.target, ("id", "name"))
        barrier.wait()
        with ground.opened() as database:
            load.create(database, place, ["id", "name"], "job")
        return ground.placed(RunKey(1, 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(stage, range(4)))
    table = ground.sql(ground.table.beside("_bookmarks_tokens"))
    assert ground.rows(f"SELECT count(*) FROM {table}") == [(4,)]


# ---- what state may name


def _request() -> StagingRequest:
    return StagingRequest(JdbcSink.kind, "conn:dw#public.dim", stats={"mode": "append"})


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("public.dim", "no stage table of this output"),
        ("x'; DROP TABLE dim", "no stage table of this output"),
        (str(StagePlace.of("s", StageName.of(Territory("test", "other"), RunKey(1, 1), NAME)).table), "no stage table"),
        (str(StagePlace.of("s", StageName.of(JOB, RunKey(1, 2), NAME)).table), "no stage table"),
        (str(StagePlace.of("s", StageName.of(JOB, RunKey(1, 1), "another")).table), "no stage table"),
        (str(StagePlace.of("s", StageName.of(JOB, RunKey(1, 1), NAME)).loading), "no stage table"),
    ],
)
def test_place_that_is_not_the_run_s_own_is_refused(blobs: BlobStore, place: str, why: str) -> None:
    entry, _ = JdbcSink().stage(JOB, RunKey(1, 1), NAME, _request())
    output = stored_output(replace(entry, place=place), RunKey(1, 1), blobs)
    with pytest.raises(OutOfBoundsError, match=why):
        JdbcSink().prepare(output)


@pytest.mark.parametrize("target", ["", "public.dim", "conn:dw", "conn:dw#", "conn:dw#a.b.c", "ftp://x#dim"])
def test_target_that_is_no_table_is_refused(blobs: BlobStore, target: str) -> None:
    entry, _ = JdbcSink().stage(JOB, RunKey(1, 1), NAME, _request())
    with pytest.raises(OutOfBoundsError, match="it is no table of a database"):
        JdbcSink().prepare(stored_output(replace(entry, target=target), RunKey(1, 1), blobs))


@pytest.mark.parametrize(
    "root",
    [
        "conn:dw#public/test/other",
        "conn:dw#public/prod/job",
        "conn:dw/test/job",
        "ftp://x#public/test/job",
        "conn:dw#a.b/test/job",
        "conn:dw#'/test/job",
        "/test/job",
    ],
)
def test_root_that_is_not_the_job_s_own_is_refused(root: str) -> None:
    with pytest.raises(OutOfBoundsError, match="are listed as <address>#<schema>/test/job"):
        JdbcSink().check_root(JOB, root)


@pytest.mark.parametrize("schema", [None, "public", 'Odd "é" .#/\'`', "a/test/job"])
def test_root_of_any_schema_is_found_again(schema: str | None) -> None:
    _, root = JdbcSink().stage(JOB, RunKey(1, 1), NAME, replace(_request(), staging=schema))
    assert root is not None
    JdbcSink().check_root(JOB, root)


def test_names_of_stage_tables_fit_whatever_the_job_is_called() -> None:
    name = StageName.of(Territory("n" * 250, "é" * 100), RunKey(99_999_999_999, 99_999_999_999), "o" * 250)
    assert len(str(replace(name, is_loading=True)).encode()) <= 63


def test_sweep_that_can_t_reach_the_database_says_what_stays(blobs: BlobStore) -> None:
    nowhere = DatabaseLogin("postgresql", "127.0.0.1", 1, "dw", "etl", "hunter2")
    sink = JdbcSink(OneLogin(nowhere))
    _, root = sink.stage(JOB, RunKey(1, 1), NAME, _request())
    assert root is not None
    with pytest.raises(SourceError, match=r"have staged there stays, and the next run sweeps it") as caught:
        sink.sweep(JOB, root, 1)
    assert "hunter2" not in str(caught.value)


def test_clean_and_replay_are_refused_by_name(blobs: BlobStore) -> None:
    entry, _ = JdbcSink().stage(JOB, RunKey(1, 1), NAME, _request())
    for why in (JdbcSink().why_not_clean(entry), JdbcSink().why_not_replay(entry)):
        assert why is not None
        assert "a table (conn:dw#public.dim), whose rows don't tell which run has written them" in why
