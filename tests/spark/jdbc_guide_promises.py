"""The scripts of the guide to databases do what it says: `test_jdbc_guide.py` runs these in a process with the driver.

Each is run as it is printed, twice, with a change of the source between. Only folders below /lake lie elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.redshift.client import RedshiftClient
from tests.databases.servers import new_database
from tests.sinks.redshift.copy_ground import PostgresCopies
from tests.sources.jdbc.shop import Shop
from tests.spark.lake import rows_of
from tools.jars import fetch

pytestmark = pytest.mark.spark

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
SHOP = """
CREATE TABLE orders (id bigint PRIMARY KEY, region varchar(9), amount int, updated_at timestamptz NOT NULL);
INSERT INTO orders SELECT n, 'eu', 10 * n, '2013-01-31 00:00:00Z' FROM generate_series(1, 3) n;
CREATE TABLE line (id bigint PRIMARY KEY, order_id bigint NOT NULL, sku text, amount int);
INSERT INTO line SELECT id, id, 'pen', amount FROM orders;
CREATE TABLE people (id int PRIMARY KEY, name text, is_deleted boolean, updated_at timestamptz NOT NULL);
INSERT INTO people VALUES (1, 'Ada', false, '2013-01-31 00:00:00Z'), (2, 'Bob', false, '2013-01-31 00:00:00Z');
CREATE TABLE prices (article text PRIMARY KEY, price int);
INSERT INTO prices VALUES ('pen', 1), ('ink', 2)
"""


@dataclass(frozen=True)
class Case:
    """What becomes of the source after the first run, and the rows of the target after either."""

    change: str
    target: str
    rows: list[list[tuple[Any, ...]]]


ORDER = "INSERT INTO orders VALUES (4, 'us', 40, now())"
OF_ORDERS = [[(1, 10), (2, 20), (3, 30)], [(1, 10), (2, 20), (3, 30), (4, 40)]]
CASES: Mapping[str, Case] = {
    "databases.md: In five minutes": Case(
        f"{ORDER}; UPDATE orders SET amount = 11, updated_at = now() WHERE id = 1",
        "SELECT id, amount FROM reporting.orders",
        [OF_ORDERS[0], [(1, 11), *OF_ORDERS[1][1:]]],
    ),
    "databases-writing.md: Databases: writing": Case(ORDER, "SELECT id, amount FROM reporting.new_orders", OF_ORDERS),
    "databases-writing.md: Deletes": Case(
        "UPDATE people SET is_deleted = true, updated_at = now() WHERE id = 1",
        "SELECT id, name FROM reporting.people",
        [[(1, "Ada"), (2, "Bob")], [(2, "Bob")]],
    ),
    # PostgreSQL is in the place of Redshift, and lets what the manifest names come by INSERT in place of COPY.
    "databases-writing.md: Redshift": Case(ORDER, "SELECT id, amount FROM reporting.new_orders", OF_ORDERS),
    "databases-snapshots.md: Databases: comparing whole tables": Case(
        "DELETE FROM prices WHERE article = 'ink'; UPDATE prices SET price = 3 WHERE article = 'pen'",
        "SELECT article, price FROM reporting.prices",
        [[("ink", 2), ("pen", 1)], [("pen", 3)]],
    ),
    "databases-reading.md: Queries in place of tables": Case(
        # Not now(): a time of a query is final when its second is over.
        "INSERT INTO orders VALUES (4, 'us', 40, '2013-02-01'); INSERT INTO line VALUES (4, 4, 'ink', 40)",
        "/lake/sold",
        OF_ORDERS,
    ),
    "databases-reading.md: Value by value": Case(ORDER, "/lake/orders", OF_ORDERS),
    "databases-reading.md: Sharded jobs": Case(ORDER, "/lake/orders", OF_ORDERS),
}


def scripts() -> dict[str, str]:
    """Return the Spark scripts of the guide, by page and heading."""
    found: dict[str, str] = {}
    for page in sorted(GUIDES.glob("databases*.md")):
        text, heading = page.read_text(), ""
        for name, block in re.findall(r"^#+ ([^\n]+)$|^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            heading = name or heading
            if "SparkSession" in block:
                found[f"{page.name}: {heading}"] = block
    return found


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Start Spark with the driver of PostgreSQL."""
    return {"spark.jars": ",".join(str(jar) for jar in sorted(fetch("postgresql").glob("*.jar")))}


@pytest.fixture
def databases(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Shop, Shop]]:
    """Make the database of a shop, and an empty one for reports, which the connections of the guide lead to."""
    with ExitStack() as made:
        server = request.getfixturevalue("postgresql_server")
        shop, reports = (Shop(made.enter_context(new_database(server))) for _ in range(2))
        for statement in SHOP.split(";"):
            shop.run(statement)
        reports.run("CREATE SCHEMA reporting")
        for name, database in (("SHOP", shop), ("CRM", shop), ("DW", reports)):
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}", uri_of(database.login))
        monkeypatch.setenv("AIRFLOW_CONN_REDSHIFT", f"redshift{uri_of(reports.login).removeprefix('postgresql')}")
        monkeypatch.setattr(RedshiftClient, "open", PostgresCopies.open)
        monkeypatch.setattr(RedshiftClient, "loading", PostgresCopies.loading)
        monkeypatch.setattr(RedshiftClient, "why_not_from", PostgresCopies.why_not_from)
        yield shop, reports


def uri_of(login: DatabaseLogin) -> str:
    who = f"{quote(login.user or '')}:{quote(login.password or '', safe='')}"
    return f"postgresql://{who}@{login.host}:{login.port}/{login.database}"


def test_each_script_of_the_guide_is_known() -> None:
    assert scripts().keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_script_of_the_guide_does_what_it_says(
    databases: tuple[Shop, Shop], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (shop, reports), case = databases, CASES[name]
    script = scripts()[name].replace("/lake/", f"{tmp_path}/lake/").replace("s3://acme-tmp", f"{tmp_path}/tmp")
    spark.conf.set("spark.bookmarks.job", "shop.orders")
    spark.conf.set("spark.bookmarks.store", f"sqlite:///{tmp_path}/bookmarks.db?create=true&state_uri={tmp_path}/state")
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: spark)

    def target() -> list[tuple[Any, ...]]:
        if case.target.startswith("SELECT"):
            return sorted(reports.rows(case.target))
        return rows_of(spark.read.parquet(f"{tmp_path}{case.target}").select("id", "amount"))

    exec(compile(script, name, "exec"), {})  # noqa: S102 - our own page
    assert target() == case.rows[0]
    for statement in case.change.split(";"):
        shop.run(statement)
    exec(compile(script, name, "exec"), {})  # noqa: S102 - the same, once more
    assert target() == case.rows[1]
