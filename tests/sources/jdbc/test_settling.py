"""Who may still write is seen and waited for, or it is an error that says what to do: on servers as they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.database.open_transaction import OpenTransaction
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sources.jdbc.planner import TablePlanner
from airflow_bookmarks.sources.jdbc.position import TablePlan
from airflow_bookmarks.sources.jdbc.settling import watch
from airflow_bookmarks.sources.source import PlanInput
from tests.chaos.writers.session import MariaDbSession
from tests.databases.servers import login_to, new_database
from tests.sources.jdbc.shop import AT_ONCE, Shop
from tools.servers import DatabaseServer, mariadb, postgresql, standby_of

LONG = timedelta(seconds=60)
AT = {"postgresql": "timestamptz DEFAULT now()", "mariadb": "timestamp(6) DEFAULT current_timestamp(6)"}
SERIAL = {"postgresql": "bigserial", "mariadb": "bigint AUTO_INCREMENT"}


@contextmanager
def shop_in(server: DatabaseServer) -> Iterator[Shop]:
    """Make a database with an empty table of orders."""
    with new_database(server) as login:
        made = Shop(login, settle_for=AT_ONCE)
        made.run(
            f"CREATE TABLE orders (id {SERIAL[login.dialect]} PRIMARY KEY, at {AT[login.dialect]} NOT NULL, n int)"
        )
        yield made


@pytest.fixture
def pg(postgresql_server: DatabaseServer) -> Iterator[Shop]:
    """Make a shop in PostgreSQL."""
    with shop_in(postgresql_server) as made:
        yield made


@pytest.fixture
def maria(mariadb_server: DatabaseServer) -> Iterator[Shop]:
    """Make a shop in MariaDB."""
    with shop_in(mariadb_server) as made:
        yield made


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a shop in each."""
    with shop_in(request.getfixturevalue(f"{request.param}_server")) as made:
        yield made


class Asked:
    """Queries of a planner, before which a test does something."""

    holds_session = True

    def __init__(self, database: Database, before: Callable[[str], None]) -> None:
        self._database, self._before = database, before

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        self._before(sql)
        return self._database.rows(sql)


def planned(
    shop: Shop, *steps: Callable[[], object], before: Callable[[str], None] = lambda sql: None, **how: Any
) -> TablePlan:
    """Plan the next run; each time that it waits for something, make a step in place of the time."""
    left = list(steps)

    def pause(seconds: float) -> None:
        if left:
            left.pop(0)()
        threading.Event().wait(min(seconds, 0.15) if left else seconds)  # InnoDB renews its list after a tenth

    source = shop.source(**{"settle_for": LONG, **how})
    with open_database(shop.login) as database:
        dialect = dialect_named(shop.login.dialect)
        planner = TablePlanner(
            Asked(database, before), dialect, source.recipe, "orders", lambda: open_database(shop.login), pause
        )
        plan = planner.plan(PlanInput(shop.position))
    assert left == [], "the plan was made before all had ended"
    shop.position = plan.leads_to.encode()
    return plan


def listed(login: DatabaseLogin) -> tuple[OpenTransaction, ...]:
    """Return who may still write."""
    dialect = dialect_named(login.dialect)
    with open_database(login) as database, watch("orders", database, dialect, lambda: open_database(login)) as watched:
        return watched.open()


def listed_of(owner: str, login: DatabaseLogin) -> tuple[OpenTransaction, ...]:
    """Return how one session may still write: a busy server lists the last statement of closed ones for a while."""
    return tuple(each for each in listed(login) if each.owner == owner)


def own_id(session: Database) -> str:
    """Return by what MariaDB knows a session."""
    return str(session.rows("SELECT connection_id()")[0][0])


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while not is_so():
        threading.Event().wait(0.02)


def nothing() -> None:
    """Let a poll pass."""


# ---- from one stage to the next


def test_transaction_that_is_prepared_while_it_is_waited_for_is_waited_for_on(pg: Shop) -> None:
    with open_database(pg.login) as slow:
        slow.execute("BEGIN")
        slow.execute("INSERT INTO orders (n) VALUES (1)")
        pg.run("INSERT INTO orders (n) VALUES (2)")

        plan = planned(
            pg,
            nothing,
            lambda: slow.execute("PREPARE TRANSACTION 'one'"),
            nothing,
            lambda: pg.run("COMMIT PREPARED 'one'"),
        )

    assert pg.held(plan) == [(1,), (2,)]


def test_prepared_transaction_holds_the_window_up(pg: Shop) -> None:
    with open_database(pg.login) as slow:
        slow.execute("BEGIN")
        slow.execute("INSERT INTO orders (n) VALUES (1)")
        slow.execute("PREPARE TRANSACTION 'two'")
    pg.run("INSERT INTO orders (n) VALUES (2)")
    try:
        assert pg.read() == []
    finally:
        pg.run("COMMIT PREPARED 'two'")
    assert pg.read() == [(1,), (2,)]


@contextmanager
def waiting_statement(maria: Shop) -> Iterator[tuple[MariaDbSession, Callable[[], None]]]:
    """Begin a transaction whose first statement waits for another table; yield its session, and what lets it go on."""
    maria.run("CREATE TABLE other (n int)")
    maria.run("INSERT INTO other VALUES (1)")
    slow = MariaDbSession(maria.login)
    with open_database(maria.login) as locker:
        locker.execute("LOCK TABLES other WRITE")
        slow.execute("XA START 'slow'")
        thread = threading.Thread(target=slow.execute, args=["INSERT INTO orders (n) SELECT n FROM other"])
        thread.start()
        waits = "SELECT 1 FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock%'"
        until(lambda: bool(maria.rows(waits)))

        def go_on() -> None:
            locker.execute("UNLOCK TABLES")
            thread.join()

        maria.run("INSERT INTO orders (n) VALUES (2)")  # whose statement began later: so its time is later
        yield slow, go_on
    slow.close()


def test_statement_that_waits_is_waited_for_as_the_transaction_that_it_becomes(maria: Shop) -> None:
    with waiting_statement(maria) as (slow, go_on):

        def commit() -> None:
            slow.execute("XA END 'slow'")
            slow.execute("XA COMMIT 'slow' ONE PHASE")

        plan = planned(maria, nothing, go_on, nothing, commit, keys=["at", "id"])

    assert len(maria.held(plan)) == 2


def test_transaction_is_waited_for_when_it_was_prepared_and_its_session_has_gone(maria: Shop) -> None:
    with waiting_statement(maria) as (slow, go_on):

        def prepare() -> None:
            go_on()
            slow.execute("XA END 'slow'")
            slow.execute("XA PREPARE 'slow'")
            slow.close()

        plan = planned(maria, nothing, prepare, nothing, lambda: maria.run("XA COMMIT 'slow'"), keys=["at", "id"])

    assert len(maria.held(plan)) == 2


def test_statement_that_goes_on_after_the_limit_keeps_its_time(maria: Shop) -> None:
    """Its transaction begins later than its time, which is what counts."""
    with waiting_statement(maria) as (slow, go_on):
        plan = planned(maria, nothing, go_on, keys=["at", "id"], settle_for=timedelta(seconds=1))
        assert maria.held(plan) == []
        slow.execute("XA END 'slow'")
        slow.execute("XA COMMIT 'slow' ONE PHASE")

    assert len(maria.read(keys=["at", "id"], settle_for=LONG)) == 2


def test_transaction_whose_statement_is_over_may_have_an_earlier_time_than_its_own(maria: Shop) -> None:
    with waiting_statement(maria) as (slow, go_on):
        # InnoDB tells the second in which a transaction began.
        until(lambda: bool(maria.rows("SELECT 1 FROM orders WHERE at < now(6) - INTERVAL 2 SECOND")))
        go_on()
        assert maria.read(keys=["at", "id"]) == []
        slow.execute("XA END 'slow'")
        slow.execute("XA COMMIT 'slow' ONE PHASE")

    assert len(maria.read(keys=["at", "id"])) == 2


# ---- the end of a window, and the list


def test_transaction_that_begins_while_the_end_is_taken_is_not_lost(pg: Shop) -> None:
    """It begins after the clock was read, and takes a key before the greatest one is committed."""
    with open_database(pg.login) as slow:
        left = ["SELECT"]

        def write(sql: str) -> None:
            if 'FROM "orders"' in sql and left:  # the query for the end
                left.clear()
                ((at,),) = pg.rows("SELECT clock_timestamp()")
                until(
                    lambda: bool(pg.rows(f"SELECT 1 WHERE clock_timestamp() > '{at}'::timestamptz + '2 s'::interval"))
                )
                slow.execute("BEGIN")
                slow.execute("INSERT INTO orders (n) VALUES (1)")
                pg.run("INSERT INTO orders (n) VALUES (2)")

        plan = planned(pg, before=write, settle_for=timedelta(0))
        assert pg.held(plan) == []
        assert pg.read() == []  # though the end that the first run has seen is older than the transaction, by the clock
        slow.execute("COMMIT")

    assert pg.read() == [(1,), (2,)]


@pytest.mark.parametrize(("at", "is_young"), [("now()", True), ("now() - interval '1 hour'", False)])
def test_young_time_is_let_settle_before_the_list_is_made(pg: Shop, at: str, is_young: bool) -> None:
    pg.run(f"INSERT INTO orders (at) VALUES ({at})")
    asked: list[str] = []
    steps = [lambda: asked.append("a pause")] if is_young else []

    planned(pg, *steps, keys=["at", "id"], before=asked.append)

    order = [each for each in asked if each == "a pause" or "pg_locks" in each]
    assert (order[0] == "a pause") is is_young


def test_transactions_of_mariadb_are_listed_from_their_first_row_on(maria: Shop) -> None:
    with open_database(maria.login) as session:
        owner = own_id(session)
        session.execute("START TRANSACTION")
        assert listed_of(owner, maria.login) == ()  # it has done nothing yet
        session.rows("SELECT * FROM orders")
        (reading,) = listed_of(owner, maria.login)
        session.execute("INSERT INTO orders (n) VALUES (1)")
        (writing,) = listed_of(owner, maria.login)
        session.execute("ROLLBACK")
        session.execute("START TRANSACTION READ ONLY")
        session.rows("SELECT * FROM orders")
        assert [each.stage for each in listed_of(owner, maria.login)] == [1]
    assert (reading.id.split()[0], writing.id.split()[0]) == ("reading", "transaction")
    assert writing.may_continue(reading)


def test_reader_leaves_no_transaction_that_the_next_one_would_wait_for(maria: Shop) -> None:
    """A server may end what a connection has left only after others have looked."""
    with open_database(maria.login) as queries, open_database(maria.login) as session:
        with watch("orders", queries, maria.dialect, lambda: nullcontext(session)) as watched:
            watched.open()
            assert session.rows("SELECT @@in_transaction") == [(1,)]
        assert session.rows("SELECT @@in_transaction") == [(0,)]


def test_transactions_of_postgresql_are_listed_from_their_beginning_on(pg: Shop) -> None:
    with open_database(pg.login) as session:
        session.execute("BEGIN READ ONLY")
        assert len(listed(pg.login)) == 1
        session.execute("COMMIT")
        assert listed(pg.login) == ()


@pytest.mark.parametrize("zone", ["Asia/Tokyo", pytest.param("America/New_York", marks=pytest.mark.thorough)])
def test_time_of_a_transaction_is_right_in_each_zone_of_a_server(mariadb_server: DatabaseServer, zone: str) -> None:
    with mariadb(zone) as server, shop_in(server) as shop, shop.transaction() as slow:
        slow.execute("SET time_zone = '+05:00'")
        before = datetime.now(UTC)
        slow.execute("INSERT INTO orders (n) VALUES (1)")
        (one,) = listed_of(own_id(slow), shop.login)
        assert one.since is not None
        assert before - timedelta(seconds=2) < one.since <= datetime.now(UTC)


def test_statement_of_an_event_is_waited_for(mariadb_server: DatabaseServer) -> None:
    with mariadb() as server, shop_in(server) as shop:
        shop.run("SET GLOBAL event_scheduler = on")
        shop.run("CREATE EVENT late ON SCHEDULE AT current_timestamp DO INSERT INTO orders (n) SELECT sleep(60)")
        running = "SELECT id FROM information_schema.processlist WHERE command = 'Connect' AND info LIKE 'INSERT%'"
        until(lambda: bool(shop.rows(running)))
        ((owner,),) = shop.rows(running)
        assert [each.stage for each in listed_of(str(owner), shop.login)] == [0]
        shop.run(f"KILL {owner}")


# ---- who is not waited for


def test_transaction_in_another_database_is_not_waited_for(pg: Shop, postgresql_server: DatabaseServer) -> None:
    pg.run("CREATE ROLE reader LOGIN PASSWORD 'p'")
    with shop_in(postgresql_server) as other, other.transaction() as slow:
        slow.execute("INSERT INTO orders (n) VALUES (1)")
        assert listed(pg.login) == ()
        assert listed(replace(pg.login, user="reader", password="p")) == ()
    pg.run("DROP ROLE reader")


@pytest.mark.parametrize("work", ["vacuum", "analyze"])
def test_autovacuum_is_not_waited_for(postgresql_server: DatabaseServer, work: str) -> None:
    with postgresql({"autovacuum_naptime": "1s"}) as server, shop_in(server) as shop:
        other = "analyze" if work == "vacuum" else "vacuum"
        shop.run(
            f"ALTER TABLE orders SET (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1, "
            f"autovacuum_{work}_threshold = 1, autovacuum_{other}_threshold = 1000000, "
            "autovacuum_vacuum_insert_threshold = -1)"
        )
        shop.run("INSERT INTO orders (n) SELECT g FROM generate_series(1, 20000) g")
        shop.run("DELETE FROM orders WHERE id % 2 = 0")
        until(lambda: bool(shop.rows(f"SELECT 1 FROM pg_stat_progress_{work} WHERE relid = 'orders'::regclass")))
        assert shop.rows(
            "SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
            "WHERE locktype = 'virtualxid' AND backend_type = 'autovacuum worker'"
        )
        assert listed(shop.login) == ()


def test_vacuum_is_not_waited_for(pg: Shop) -> None:
    pg.run("INSERT INTO orders (n) SELECT g FROM generate_series(1, 20000) g")
    with open_database(pg.login) as session:
        session.execute("SET vacuum_cost_delay = 100")
        session.execute("SET vacuum_cost_limit = 1")
        thread = threading.Thread(target=_ignoring_its_end, args=[session, "VACUUM orders"])
        thread.start()
        until(lambda: bool(pg.rows("SELECT 1 FROM pg_stat_progress_vacuum WHERE relid = 'orders'::regclass")))
        assert listed(pg.login) == ()
        pg.run("SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum WHERE relid = 'orders'::regclass")
        thread.join()


def _ignoring_its_end(session: Database, sql: str) -> None:
    with pytest.raises(Exception, match="cancel"):
        session.execute(sql)


# ---- what can't be seen


def test_user_of_postgresql_without_rights_loses_nothing(pg: Shop) -> None:
    pg.run("CREATE ROLE reader LOGIN PASSWORD 'p'")
    pg.run("GRANT SELECT ON orders TO reader")
    reader = Shop(replace(pg.login, user="reader", password="p"), settle_for=AT_ONCE)
    with pg.transaction() as slow:
        slow.execute("INSERT INTO orders (n) VALUES (1)")
        pg.run("INSERT INTO orders (n) VALUES (2)")
        (one,) = listed(reader.login)
        assert one.since is None
        assert reader.read() == []
        assert Shop(reader.login, settle_for=AT_ONCE).read(keys=["at", "id"]) == []
    assert reader.read() == [(1,), (2,)]
    pg.run("DROP OWNED BY reader")
    pg.run("DROP ROLE reader")


def test_user_of_mariadb_without_rights_is_told_what_to_grant(maria: Shop) -> None:
    maria.run("CREATE USER reader IDENTIFIED BY 'p'")
    maria.run(f"GRANT SELECT ON {maria.login.database}.* TO reader")
    reader = Shop(replace(maria.login, user="reader", password="p"), settle_for=AT_ONCE)
    maria.run("INSERT INTO orders (n) VALUES (1)")
    with pytest.raises(SourceError, match=r"GRANT PROCESS ON \*\.\* TO <user>; or give settle=timedelta"):
        reader.read()
    maria.run("GRANT PROCESS ON *.* TO reader")
    assert reader.read() == [(1,)]
    maria.run("DROP USER reader")


def test_standby_is_refused_without_a_time_to_settle(pg: Shop, postgresql_server: DatabaseServer) -> None:
    pg.run("INSERT INTO orders (at) VALUES (now() - interval '1 hour')")
    with standby_of(postgresql_server) as server:
        shop = Shop(login_to(server, pg.login.database), settle_for=AT_ONCE)
        with pytest.raises(OptionError, match=r"this server is a standby: read from its primary.*settle=timedelta"):
            shop.read()
        assert len(shop.read(keys=["at", "id"], settle=timedelta(minutes=1))) == 1


def test_replica_of_mariadb_is_refused_without_a_time_to_settle(mariadb_server: DatabaseServer) -> None:
    with mariadb() as server, shop_in(server) as shop:
        shop.run("CHANGE MASTER TO master_host = '127.0.0.1', master_port = 1, master_user = 'x'")
        shop.run("START SLAVE SQL_THREAD")
        running = "SELECT 1 FROM information_schema.processlist WHERE command = 'Slave_SQL'"
        until(lambda: bool(shop.rows(running)))
        with pytest.raises(OptionError, match="this server is a replica: read from its primary"):
            shop.read()
        assert shop.read(keys=["at", "id"], settle=timedelta(minutes=1)) == []


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("CREATE MATERIALIZED VIEW seen AS SELECT id FROM orders", "seen is a materialised view"),
        (
            "CREATE MATERIALIZED VIEW kept AS SELECT id FROM orders; CREATE VIEW seen AS SELECT id + 1 AS id FROM kept",
            "kept is a materialised view",
        ),
        (
            "CREATE FOREIGN DATA WRAPPER away; CREATE SERVER away FOREIGN DATA WRAPPER away;"
            "CREATE FOREIGN TABLE seen (id int NOT NULL) SERVER away",
            "seen is a foreign table",
        ),
    ],
)
def test_table_that_gets_its_rows_from_elsewhere_is_refused(pg: Shop, made: str, why: str) -> None:
    for statement in made.split(";"):
        pg.run(statement)
    with pytest.raises(OptionError, match=f"settle='auto' would lose rows: {why}"):
        pg.read(table="seen")


def test_table_of_a_subscription_is_refused(pg: Shop) -> None:
    pg.run(
        "CREATE SUBSCRIPTION away CONNECTION 'host=127.0.0.1' PUBLICATION p WITH (connect = false, slot_name = NONE)"
    )
    pg.run("INSERT INTO pg_subscription_rel SELECT oid, 'orders'::regclass, 'r', NULL FROM pg_subscription")
    try:
        with pytest.raises(OptionError, match="orders gets its rows by a subscription"):
            pg.read()
    finally:
        pg.run("DROP SUBSCRIPTION away")


# ---- a job that begins now


def test_job_does_not_begin_now_where_the_end_is_not_known(shop: Shop) -> None:
    shop.run("INSERT INTO orders (n) VALUES (1)")
    with shop.transaction() as slow:
        slow.execute("INSERT INTO orders (n) VALUES (2)")
        shop.run("INSERT INTO orders (n) VALUES (3)")
        with pytest.raises(SourceError, match="where the table ends now is not known while transactions are open"):
            shop.read(start=Start(is_now=True))

    def begins_behind_all_rows() -> bool:
        # On a busy machine a server lists a transaction for a moment after its end: the error says to try again.
        try:
            return shop.read(start=Start(is_now=True)) == []
        except SourceError:
            return False

    until(begins_behind_all_rows)
    shop.run("INSERT INTO orders (n) VALUES (4)")
    assert shop.read() == [(4,)]
