"""The example `orders_report`, with real databases: its report equals a query over the shop, whatever happens there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from tests.databases.servers import new_database
from tests.quick_spark import with_java_options
from tools.jars import fetch
from tools.servers import DatabaseServer

from .conftest import Played, Player, World
from .test_dags_examples import FOLDER, Examples

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAG_ID = "orders_report"
ORDERS = """
    CREATE TABLE orders (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, placed_on date NOT NULL, amount numeric(12, 2) NOT NULL,
        is_deleted boolean NOT NULL DEFAULT false, updated_at timestamptz NOT NULL DEFAULT now())"""
BY_DAY = "SELECT placed_on, count(*), sum(amount) FROM orders WHERE NOT is_deleted GROUP BY placed_on ORDER BY 1"
REPORT = "SELECT placed_on, orders, amount FROM reporting.orders_by_day ORDER BY 1"


@dataclass(frozen=True)
class Side:
    """One of the two databases."""

    login: DatabaseLogin

    def run(self, *statements: str) -> None:
        with open_database(self.login) as database:
            for statement in statements:
                database.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_database(self.login) as database:
            return database.rows(query)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        with open_database(self.login) as database, database.transaction():
            yield database

    def connect(self, name: str, patch: pytest.MonkeyPatch) -> None:
        """Make the connection of Airflow to it."""
        login = self.login
        uri = f"postgres://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
        patch.setenv(f"AIRFLOW_CONN_{name.upper()}", uri)


@pytest.fixture
def shop(postgresql_server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    with new_database(postgresql_server) as login:
        side = Side(login)
        side.run(ORDERS)
        side.connect("shop", monkeypatch)
        yield side


@pytest.fixture
def warehouse(postgresql_server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    with new_database(postgresql_server) as login:
        side = Side(login)
        side.run(*(FOLDER / "jobs" / "orders_by_day.sql").read_text().split(";\n")[:-1])
        side.connect("dw", monkeypatch)
        yield side


@pytest.fixture
def examples(world: World, player: Player, monkeypatch: pytest.MonkeyPatch) -> Examples:
    made = Examples(world, monkeypatch)
    monkeypatch.setenv("AIRFLOW_VAR_SHOP_DATA", str(world.folder / "shop"))
    for name, value in with_java_options(f"-Duser.home={home_with_the_driver(world.folder / 'home', made)}").items():
        monkeypatch.setenv(name, value)
    return made


def home_with_the_driver(home: Path, examples: Examples) -> Path:
    """Make a home whose Maven repository has the driver, so that Spark finds its package there and asks no other."""
    land = examples.dag(DAG_ID).get_task("land")
    assert isinstance(land, BookmarkSparkSubmitOperator)
    repository_with(home, [str(land.packages)], fetch("postgresql").glob("*.jar"))
    return home


def repository_with(home: Path, packages: Sequence[str], jars: Iterable[Path]) -> None:
    """Make a home whose Maven repository has packages, the last of which the others need where there are several."""
    files = {jar.name: jar for jar in jars}
    for package in packages:
        group, artifact, version = package.split(":")
        folder = home.joinpath(".m2", "repository", *group.split("."), artifact, version)
        folder.mkdir(parents=True)
        (folder / f"{artifact}-{version}.jar").symlink_to(files[f"{artifact}-{version}.jar"])
        needed = "" if package == packages[-1] else _dependency(packages[-1])
        (folder / f"{artifact}-{version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{needed}</project>"
        )


def _dependency(package: str) -> str:
    group, artifact, version = package.split(":")
    named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    return f"<dependencies><dependency>{named}</dependency></dependencies>"


def play(examples: Examples, **conf: Any) -> Played:
    played = Played(examples.dag(DAG_ID).test(run_conf=conf))
    assert played.state == "success"
    return played


def rows_read(job: str) -> list[int]:
    """Return how many rows each committed run of a job has written, which are those that it has read."""
    return [row["outputs"][name]["rows"] for row in BookmarkHook().history(job) for name in row["outputs"]]


@pytest.mark.thorough  # rounds of changes, of which spark/test_jdbc_snapshot.py plays each kind alone
def test_report_equals_a_query_over_the_shop_through_changes_deletes_and_late_commits(
    examples: Examples, shop: Side, warehouse: Side
) -> None:
    shop.run(
        "INSERT INTO orders (placed_on, amount) VALUES ('2013-01-31', 10), ('2013-01-31', 20.50), ('2013-02-01', 30)"
    )
    play(examples)
    assert warehouse.rows(REPORT) == shop.rows(BY_DAY)

    shop.run("UPDATE orders SET amount = 31, updated_at = now() WHERE id = 3")
    with shop.transaction() as late:
        late.execute("INSERT INTO orders (placed_on, amount) VALUES ('2013-02-02', 40)")
        late.execute("UPDATE orders SET amount = 11, updated_at = now() WHERE id = 1")
        shop.run(
            "INSERT INTO orders (placed_on, amount) VALUES ('2013-02-02', 50)",  # committed before number 4
            "UPDATE orders SET is_deleted = true, updated_at = now() WHERE id = 2",
        )
        play(examples, settle_for=0)
    assert warehouse.rows("SELECT id, amount FROM reporting.orders WHERE id > 2") == [(3, 31)]
    play(examples)

    assert warehouse.rows(REPORT) == shop.rows(BY_DAY)
    assert len(shop.rows(BY_DAY)) == 3
    assert warehouse.rows("SELECT id FROM reporting.orders ORDER BY id") == [(1,), (2,), (3,), (4,), (5,)]
    assert warehouse.rows("SELECT placed_on, amount FROM reporting.orders WHERE is_deleted") == [(None, None)]
    assert rows_read(f"{DAG_ID}.land") == [3, 1, 4]
    assert rows_read(f"{DAG_ID}.report") == [3, 1, 4]
