"""A chain over four kinds: files, a Delta table, a table of PostgreSQL, an Iceberg table; killed and rewound.

Each stage upserts what is new in the one before. After each round all of them hold the newest version of each row.
`make mixed-chain` plays 20 rounds, `test_mixed_chain.py` a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Any, TypeAlias

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import BookmarkError, JobUnknownError
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.inspect.runs import UNDONE, history
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import DriverTable, SimulatedCrash
from tests.databases.servers import new_database
from tests.spark.iceberg import iceberg_conf
from tests.spark.jdbc_sink_promises import Warehouse
from tests.spark.lake import Lake
from tools.jars import fetch, fetch_for_spark

pytestmark = pytest.mark.spark

ROUNDS = int(os.environ.get("MIXED_ROUNDS", "3"))
SEED = int(os.environ.get("MIXED_SEED") or SystemRandom().randrange(1_000_000))

STAGES = ("to_delta", "to_database", "to_iceberg")
Rows: TypeAlias = dict[int, tuple[str, int]]  # by id the value and its version


@pytest.fixture(scope="session")
def more_conf(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Start Spark with Delta, Iceberg and the driver of PostgreSQL."""
    conf = iceberg_conf(tmp_path_factory.mktemp("warehouse"))
    folders = [fetch_for_spark("delta"), fetch_for_spark("iceberg"), fetch("postgresql")]
    jars = [str(jar) for folder in folders for jar in sorted(folder.glob("*.jar"))]
    return {
        **conf,
        "spark.driver.extraClassPath": ":".join(jars),
        "spark.sql.extensions": f"io.delta.sql.DeltaSparkSessionExtension,{conf['spark.sql.extensions']}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
    }


@pytest.fixture
def pg(postgresql_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Make an empty database in PostgreSQL."""
    with new_database(postgresql_server) as login:
        yield Warehouse.entered(login, monkeypatch)


@dataclass
class Chain:
    """The stages, and what the raw files say that each has to hold."""

    lake: Lake
    pg: Warehouse
    random: Random
    expected: Rows = field(default_factory=dict)
    landed: int = 0

    # ---- the stages

    def copy(self, job: BookmarkedJob, stage: str) -> None:
        """Make the run of a stage, as the script of a user does."""
        if stage == "to_delta":
            rows = job.read("raw").schema("id INT, value STRING, version INT").csv(self.lake.path("raw"))
            job.write(rows, "out").upsert("id", order_by="version").delta(self.lake.path("delta"))
        elif stage == "to_database":
            feed = job.read("changes").delta(self.lake.path("delta"), changes=True)
            rows = feed.where("_change_type IN ('insert', 'update_postimage')")
            rows = rows.select("id", "value", "version", F.col("_commit_version").alias("at"))
            job.write(rows, "out").upsert("id", order_by="at").jdbc("conn:dw", "people")
        else:
            rows = job.read("rows").jdbc("conn:dw", "people", keys=["at", "id"])
            job.write(rows, "out").upsert("id", order_by="at").iceberg("lake.shop.people")

    def attempt(self, stage: str, number: int, run_id: str, at: Callable[[Failpoint], None]) -> None:
        """Make one attempt of a run; one that dies is gone with all that it would tidy."""
        driver = DriverTable(self.lake.store.table)

        def hook(point: Failpoint) -> None:
            try:
                at(point)
            except SimulatedCrash:
                driver.is_dead = True
                raise

        store = BookmarkStore(driver, self.lake.store.namespace)
        with (
            runs_in(lambda _: RunEnvironment(at=hook)),
            BookmarkedJob(self.lake.spark, stage, store=store, run_id=run_id, attempt=number) as job,
        ):
            self.copy(job, stage)

    # ---- what is there

    def land(self) -> None:
        """Let a file appear, with new rows and newer versions of old ones."""
        self.landed += 1
        old = self.random.sample(sorted(self.expected), min(2, len(self.expected)))
        ids = [*old, *(100 * self.landed + place for place in range(self.random.randint(1, 4)))]
        for each in ids:
            self.expected[each] = (f"value {each}.{self.landed}", self.landed)
        lines = [f"{each},{self.expected[each][0]},{self.expected[each][1]}" for each in ids]
        self.lake.put(f"{self.landed:03}.csv", *lines)

    def rows(self, stage: str) -> Rows:
        if stage == "to_database":
            return as_rows(self.pg.rows("SELECT id, value, version FROM people"))
        if stage == "to_iceberg":
            self.lake.spark.sql("REFRESH TABLE lake.shop.people")
            frame: DataFrame = self.lake.spark.table("lake.shop.people")
        else:
            frame = self.lake.spark.read.format("delta").load(self.lake.path("delta"))
        return as_rows([tuple(row) for row in frame.select("id", "value", "version").collect()])

    # ---- what goes wrong

    def play(self, number: int) -> str:
        """Play a round; return what went wrong in it."""
        for _ in range(self.random.randint(1, 2)):
            self.land()
        told = self.disturbed(number, self.random.choice(STAGES))
        for stage in STAGES:
            self.attempt(stage, 9, f"round-{number}", lambda point: None)
        return told

    def disturbed(self, number: int, stage: str) -> str:
        """Let the stages before one run, and that one die, be overtaken, or go back."""
        for before in STAGES[: STAGES.index(stage)]:
            self.attempt(before, 9, f"round-{number}", lambda point: None)
        kind = self.random.choice(["killed", "killed twice", "overtaken", "rewound"])
        if kind == "rewound":
            return self.gone_back(stage)
        points = [self.random.choice([*Failpoint]) for _ in range(2 if kind == "killed twice" else 1)]
        for attempt, point in enumerate(points, 1):
            at = self.overtaken_at(point, stage, number) if kind == "overtaken" else dies_when_it_comes_to(point)
            try:
                self.attempt(stage, attempt, f"round-{number}", at)
            except (SimulatedCrash, BookmarkError):  # an overtaken driver is told so
                continue
        return f"{stage} {kind} at {', '.join(points)}"

    def overtaken_at(self, wanted: Failpoint, stage: str, number: int) -> Callable[[Failpoint], None]:
        """Return what lets another attempt make the run while this one stands at a point, and goes on after that."""
        seen: list[Failpoint] = []

        def at(point: Failpoint) -> None:
            seen.append(point)
            if point is wanted and seen.count(wanted) == 1:
                self.attempt(stage, 5, f"round-{number}", lambda _: None)

        return at

    def gone_back(self, stage: str) -> str:
        """Rewind a stage to one of the runs that are left, or reset it."""
        store, how = self.lake.store, {"reason": "a test", "who": "me", "force": True}
        try:
            left = [int(run["number"]) for run in history(store, stage) if run["state"] != UNDONE]
        except JobUnknownError:
            return f"{stage} not rewound: it has no run yet"
        back = self.random.choice([0, *left])
        if back:
            rewind(store, stage, back, **how)  # type: ignore[arg-type]  # by name
        else:
            reset(store, stage, **how)  # type: ignore[arg-type]  # by name
        return f"{stage} rewound to run {back}, of {len(left)} that were left"


def dies_when_it_comes_to(wanted: Failpoint) -> Callable[[Failpoint], None]:
    """Return what lets a driver die at a point."""

    def at(point: Failpoint) -> None:
        if point is wanted:
            raise SimulatedCrash(wanted)

    return at


def as_rows(rows: list[tuple[Any, ...]]) -> Rows:
    """Return rows by id, each of which has to be there once."""
    found = {row[0]: (row[1], row[2]) for row in rows}
    assert len(found) == len(rows), f"rows of one id come more than once: {sorted(rows)}"
    return found


@pytest.mark.needs("own sessions")
def test_each_stage_holds_the_newest_version_of_each_row_after_each_round(lake: Lake, pg: Warehouse) -> None:
    pg.run("CREATE TABLE people (id int PRIMARY KEY, value text, version int, at bigint NOT NULL)")
    chain = Chain(lake, pg, Random(SEED))
    print(f"mixed chain: MIXED_SEED={SEED} MIXED_ROUNDS={ROUNDS} plays it again")
    for number in range(1, ROUNDS + 1):
        told = chain.play(number)
        print(f"mixed chain: round {number}: {told}; {len(chain.expected)} rows", flush=True)
        for stage in STAGES:
            assert chain.rows(stage) == chain.expected, f"{stage} after round {number}: {told}; MIXED_SEED={SEED}"
            head = lake.store.head(stage)
            assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
            assert lake.store.open_runs(stage, head) == []
