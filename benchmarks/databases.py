"""B9: reading a table by key and writing one, beside what a job does by hand: PostgreSQL on this machine.

    nothing new      ours without Spark (a whole run), `SELECT max(id)`, and dlt's `sql_table`
    some new         ours with Spark, and `spark.read.jdbc` that is told the window
    first load       ours in 8 parts, and `spark.read.jdbc` with the same column, ends and parts
    publish          ours (stage, then one INSERT ... SELECT), and `df.write.jdbc`

Each pair is measured in turns, in one process, on the same table; the target is emptied between rounds.

    $ python -m benchmarks.databases                # 10 million rows
    $ python -m benchmarks.databases --rows 200000
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.jdbc.options import TableOptions
from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.figure import beside, header, line
from benchmarks.peers.environment import peer
from benchmarks.planning import CONTEXT, NAMESPACE
from benchmarks.report import Line, Report
from benchmarks.turns import in_turns, timed
from tools.jars import fetch
from tools.servers import postgresql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.databases.address import DatabaseAddress

OUT = Path("build/bench/databases")
PARTS = 8
NEW = 1000
FIRST_LOAD = 1.05  # times a told read, at most
_OURS, _PLAIN = "ours", "by hand"


@dataclass
class Ground:
    """A PostgreSQL with a table of orders, a store beside it, and what was found so far."""

    login: DatabaseLogin
    store: BookmarkStore
    rows: int
    rounds: int
    report: Report = field(default_factory=Report)

    def run(self, sql: str) -> int:
        """Run one statement."""
        with open_database(self.login) as database:
            return database.execute(sql)

    def beside(self, measure: str, ours: Sequence[float], plain: Sequence[float], plain_name: str = _PLAIN) -> float:
        """Keep two series that were measured in turns; return the median of their ratios."""
        figures = beside(measure, "s", (_OURS, ours), (plain_name, plain))
        for figure in figures:
            self.report.figures.append(figure)
            print(line(figure), flush=True)
        return figures[-1].median


class _Known:
    """Knows one login."""

    def __init__(self, login: DatabaseLogin) -> None:
        self._login = login

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        return self._login


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/databases`."""
    parser = argparse.ArgumentParser("python -m benchmarks.databases", description="Tables as input and output.")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table that is read")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each measure")
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    print(header())
    with _ground(given.rows, given.rounds) as ground:
        _measure_nothing_new(ground)
        with _session() as spark:
            _measure_some_new(ground, spark)
            _measure_first_load(ground, spark)
            _measure_publish(ground, spark)
        ground.report.facts |= {"rows": given.rows, "load": os.getloadavg()}
        ground.report.write(OUT)
    for promise in ground.report.lines:
        print(promise.in_words())
    if ground.report.wrong:
        raise SystemExit("\n".join(check.in_words() for check in ground.report.wrong))


@contextmanager
def _ground(rows: int, rounds: int) -> Iterator[Ground]:
    with postgresql() as server, tempfile.TemporaryDirectory(prefix="bench-databases-") as folder:
        login = DatabaseLogin("postgresql", server.host, server.port, server.database, server.user, server.password)
        table = SqliteTable(f"{folder}/bookmarks.db", create=True)
        store = BookmarkStore(table, NAMESPACE)
        store.init()
        store.databases = _Known(login)
        ground = Ground(login, store, rows, rounds)
        ground.run(
            "CREATE TABLE orders (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL "
            "DEFAULT now(), customer int NOT NULL, amount numeric(10, 2) NOT NULL, note text)"
        )
        _insert(ground, rows)
        ground.run("ANALYZE orders")
        yield ground
        table.close()


def _insert(ground: Ground, rows: int) -> None:
    ground.run(
        "INSERT INTO orders (customer, amount, note) "
        f"SELECT n % 100000, (n % 10000) / 100.0, 'order ' || n FROM generate_series(1, {rows}) n"
    )


@contextmanager
def _session() -> Iterator[SparkSession]:
    from benchmarks.spark_reading import session

    jars = ",".join(map(str, sorted(fetch("postgresql").glob("*.jar"))))
    with (
        tempfile.TemporaryDirectory(prefix="bench-spark-") as folder,
        session(f"{folder}/work", {"spark.jars": jars}) as spark,
    ):
        yield spark


# ---- without Spark


def _measure_nothing_new(ground: Ground) -> None:
    """Find that nothing is new; the plan has to look at the index alone, so its time does not depend on the rows."""
    recipe = Recipe("conn:shop", "postgresql", Relation(("orders",)), TableOptions(keys=("id",)))
    source = TableSource(lambda: open_database(ground.login), recipe, "bench")

    def ours() -> None:
        run = ActiveRun.begin(ground.store, "nothing_new", RunIdentity(ground.store.new_id(), 1), RunEnvironment())
        run.plan(CONTEXT, source)
        run.commit()

    def bare() -> None:
        with open_database(ground.login) as database:
            database.rows("SELECT max(id) FROM orders")

    ours()  # reads all there is
    times = in_turns(4 * ground.rounds, ours, bare)
    measure = f"nothing new in {ground.rows:,} rows, a run"
    ground.beside(measure, *times, "SELECT max(id)")
    _beside_dlt(ground, measure, ours)
    ground.report.promise(Line(f"{measure}, without Spark", sorted(times[0])[len(times[0]) // 2], 1.0, "s"))


def _beside_dlt(ground: Ground, measure: str, ours: Callable[[], None]) -> None:
    """Let dlt look for what is new, in turns with ours; it begins where the table ends."""
    login = ground.login
    url = f"postgresql+psycopg://{login.user}:{login.password or ''}@{login.host}:{login.port}/{login.database}"
    ones: list[float] = []
    others: list[float] = []
    loaded = 0
    with (
        tempfile.TemporaryDirectory(prefix="bench-dlt-") as folder,
        peer("dlt", "dlt_orders.py", url, str(ground.rows), folder) as dlt,
    ):
        dlt.run()  # it makes its destination
        for _ in range(2 * ground.rounds):
            ones.append(timed(ours))
            seconds, count = dlt.run()
            others.append(seconds)
            loaded += count
    ground.report.check(f"{measure}: packages that dlt loaded", 0, loaded)
    ground.beside(f"{measure}, beside dlt", ones, others, "dlt sql_table")


# ---- with Spark


def _measure_some_new(ground: Ground, spark: SparkSession) -> None:
    """Read a thousand new rows of many."""

    def ours() -> None:
        with BookmarkedJob(spark, "some_new", store=ground.store) as job:
            frame = job.read(CONTEXT).jdbc("conn:shop", "orders", keys=["id"])
            _consume(frame)

    def by_hand() -> None:
        with open_database(ground.login) as database:
            ((last,),) = database.rows("SELECT max(id) FROM orders")
        _consume(_told(ground, spark, [f"id > {last - NEW} AND id <= {last}"]))

    with BookmarkedJob(spark, "some_new", store=ground.store, start="now") as job:
        job.read(CONTEXT).jdbc("conn:shop", "orders", keys=["id"])
    ones: list[float] = []
    others: list[float] = []
    for number in range(ground.rounds + 1):
        _insert(ground, NEW)
        one, other = timed(ours), timed(by_hand)
        if number:
            ones.append(one)
            others.append(other)
    ground.beside(f"{NEW:,} new of {ground.rows:,} rows", ones, others)


def _measure_first_load(ground: Ground, spark: SparkSession) -> None:
    """Read the whole table in parts."""

    def ours() -> None:
        with BookmarkedJob(spark, "first_load", store=ground.store, option="disable") as job:
            _consume(job.read(CONTEXT).jdbc("conn:shop", "orders", keys=["id"], partitions=PARTS))

    def by_hand() -> None:
        with open_database(ground.login) as database:
            ((low, high),) = database.rows("SELECT min(id), max(id) FROM orders")
        reader = spark.read.format("jdbc").options(url=ground.login.jdbc_url, dbtable="orders")
        reader = reader.options(**ground.login.jdbc_properties(), fetchsize="10000", numPartitions=str(PARTS))
        _consume(reader.options(partitionColumn="id", lowerBound=str(low), upperBound=str(high + 1)).load())

    measure = f"first load of {ground.rows:,} rows in {PARTS} parts"
    ratio = ground.beside(measure, *in_turns(max(3, ground.rounds - 2), ours, by_hand))
    ground.report.promise(Line(f"{measure}: times a read that is told its ends", ratio, FIRST_LOAD, "times"))


def _measure_publish(ground: Ground, spark: SparkSession) -> None:
    """Write to a table; what is staged is published by one statement of the database."""
    rows = ground.rows

    def frame_of_rows() -> DataFrame:
        return spark.range(rows).selectExpr("id", "id % 1000 AS customer", "concat('order ', id) AS note")

    def ours() -> None:
        with BookmarkedJob(spark, "publish", store=ground.store) as job:
            job.write(frame_of_rows(), "copy").jdbc("conn:shop", "public.copied", mode="overwrite")

    def by_hand() -> None:
        properties = ground.login.jdbc_properties()
        frame_of_rows().write.mode("overwrite").option("truncate", "true").jdbc(
            ground.login.jdbc_url, "public.written", properties=properties
        )

    measure = f"write {rows:,} rows over a table"
    ground.beside(measure, *in_turns(max(3, ground.rounds - 2), ours, by_hand), "df.write.jdbc")
    with open_database(ground.login) as database:
        ((found,),) = database.rows("SELECT count(*) FROM copied")
    ground.report.check(measure, rows, found)
    times = in_turns(3, lambda: ground.run("INSERT INTO copied SELECT * FROM written"), lambda: None)
    ground.report.add(measure, "of which INSERT ... SELECT", "s", times[0])


def _told(ground: Ground, spark: SparkSession, predicates: Sequence[str]) -> DataFrame:
    return spark.read.jdbc(
        ground.login.jdbc_url, "orders", predicates=list(predicates), properties=ground.login.jdbc_properties()
    )


def _consume(frame: DataFrame) -> None:
    """Read all columns of all rows, and write them nowhere."""
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
