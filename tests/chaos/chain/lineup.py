"""Which targets the stages have: text files alone, or tables of three kinds; and what runs beside Airflow for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.chaos.chain.stage import STAGES
from tests.chaos.chain.tables import CATALOG, CONNECTION_VARIABLE, DatabaseTable, DeltaTable, IcebergTable
from tests.chaos.chain.target import Target, TextFiles
from tools.jars import fetch, fetch_for_spark
from tools.servers import postgresql

Environment = Mapping[str, str]


class LineupName(StrEnum):
    """The line-ups there are."""

    PLAIN = "plain"
    MIXED = "mixed"


def _nothing() -> AbstractContextManager[Environment]:
    return nullcontext({})


@dataclass(frozen=True, slots=True)
class Lineup:
    """The target of each stage, and what follows from their kinds.

    `has_edges`: a stage reads the one before by `upstream()`, so it is known what of it was consumed. `takes_back`:
    rows tell which run has written them, so a run can be replayed, and what it published can be removed. `conf` is what
    Spark has to be told. `running` runs what the targets need, and yields what the environment of all has to have.
    """

    name: LineupName
    targets: Mapping[str, Target]
    has_edges: bool = True
    takes_back: bool = True
    conf: Mapping[str, str] = field(default_factory=dict)
    running: Callable[[], AbstractContextManager[Environment]] = _nothing


def lineup_below(root: Path, name: LineupName) -> Lineup:
    """Return a line-up whose files lie below `root`."""
    return {LineupName.PLAIN: _plain, LineupName.MIXED: _mixed}[name](root)


def _plain(root: Path) -> Lineup:
    return Lineup(LineupName.PLAIN, {stage: TextFiles(root / stage) for stage in STAGES})


def _mixed(root: Path) -> Lineup:
    warehouse, database = root / "warehouse", DatabaseTable("lines")
    catalog = f"spark.sql.catalog.{CATALOG}"
    extensions = (
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    )
    return Lineup(
        LineupName.MIXED,
        {"a": DeltaTable(root / "a"), "b": database, "c": IcebergTable(warehouse, "shop", "lines")},
        has_edges=False,
        takes_back=False,
        conf={
            "spark.sql.extensions": ",".join(extensions),
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": str(warehouse),
        },
        running=lambda: _with_database(database),
    )


@contextmanager
def _with_database(table: DatabaseTable) -> Iterator[Environment]:
    """Run PostgreSQL with the table in it; this process knows the connection as well, for its checks."""
    folders = [fetch_for_spark("delta"), fetch_for_spark("iceberg"), fetch("postgresql")]
    with postgresql() as server:
        address = f"{server.host}:{server.port}/{server.database}"
        uri = f"postgresql://{server.user}:{server.password}@{address}"
        os.environ[CONNECTION_VARIABLE] = uri
        try:
            table.make()
            # Behind Spark's own jars, so that the archive of their classes stays good.
            yield {CONNECTION_VARIABLE: uri, "SPARK_DIST_CLASSPATH": ":".join(f"{folder}/*" for folder in folders)}
        finally:
            del os.environ[CONNECTION_VARIABLE]
