"""What a pause over several runs reads of a table, and which runs a position knows, by the order of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.jdbc.position import TablePlan
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_partitions import Job

# In the order of MariaDB, which is another one than that of their text.
UUIDS = tuple(f"{first}-0000-1000-8000-00000000000{n}" for n, first in enumerate(("f" * 8, "a" * 8, "0" * 8)))
INSTANT = {"postgresql": "timestamptz", "mariadb": "timestamp(6)"}


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        yield Shop(login)


@pytest.fixture
def maria(request: pytest.FixtureRequest) -> Iterator[Shop]:
    with new_database(request.getfixturevalue("mariadb_server")) as login:
        yield Shop(login)


def ids(shop: Shop, plan: TablePlan) -> list[int]:
    condition = plan.window.condition(shop.dialect, plan.leads_to.table)
    return sorted(row[0] for row in shop.rows(f"SELECT id FROM {plan.source} WHERE {condition}"))


def loops(job: Job, shop: Shop, rows: Sequence[str]) -> None:
    """Insert rows one by one, and read each in a loop of its own."""
    for number, row in enumerate(rows):
        shop.run(f"INSERT INTO orders VALUES {row}")
        loop = PartLoop("orders")
        while not loop.is_over:
            loop.begin()
            source = job.source(loop, f"execution {number}")
            plan = source.plan(PlanInput(job.position))
            job.plans.append(plan)
            position = source.advance(plan)
            job.position = job.position if position is None else position.body


def test_rows_without_a_key_stay_in_a_pause_over_a_loop_of_parts(shop: Shop) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, n int, region varchar(9))")
    shop.run("INSERT INTO orders VALUES (1, 1, 'eu'), (2, NULL, 'eu')")
    source = shop.source(keys=("n",), on_null="include_once")
    first = source.plan(PlanInput())
    position = source.advance(first)
    assert position is not None
    job = Job(shop, how={"keys": ("n",), "on_null": "skip"})
    job.position = position.body
    loops(job, shop, ["(3, 3, 'eu')", "(4, 4, 'us')"])

    assert ids(shop, TableKind().union([first, *job.plans])) == [1, 2, 3, 4]


def test_pause_covers_loops_of_which_one_had_nothing_of_a_value(shop: Shop) -> None:
    shop.run(f"CREATE TABLE orders (id int, at {INSTANT[shop.login.dialect]}, region varchar(9), PRIMARY KEY (at, id))")
    job = Job(shop, how={"keys": ("at", "id")})
    loops(job, shop, ["(0, '2020-01-01', 'eu')", "(1, '2020-01-02', 'us')", "(2, '2020-01-03', 'eu')"])

    assert [ids(shop, plan) for plan in job.plans] == [[0], [1], [2]]
    assert ids(shop, TableKind().union(job.plans)) == [0, 1, 2]


def test_pause_over_keys_whose_order_is_not_known_here_says_so(maria: Shop) -> None:
    maria.run("CREATE TABLE orders (id int, u uuid PRIMARY KEY, region varchar(9))")
    job = Job(maria, how={"keys": ("u",)})
    loops(
        job,
        maria,
        [f"({n}, '{key}', '{region}')" for n, (key, region) in enumerate(zip(UUIDS, ("eu", "us", "eu"), strict=True))],
    )

    with pytest.raises(OptionError, match="can't be told from values of u, whose order is the database's own"):
        TableKind().union(job.plans)


@pytest.mark.parametrize(
    ("declared", "values", "known"),
    [
        ("timestamp(6)", ("2020-01-01", "2020-01-02", "2020-01-03"), [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        ("uuid", UUIDS, [[1, 0, 1], [1, 1, 0], [1, 1, 1]]),  # where it can't be told, a rewind is rather refused
    ],
)
def test_position_knows_the_runs_that_it_is_behind(
    maria: Shop, declared: str, values: Sequence[str], known: list[list[int]]
) -> None:
    maria.run(f"CREATE TABLE orders (u {declared} PRIMARY KEY)")
    source, position, found = maria.source(keys=("u",)), None, []
    plans = []
    for value in values:
        maria.run(f"INSERT INTO orders VALUES ('{value}')")
        plans.append(source.plan(PlanInput(position)))
        after = source.advance(plans[-1])
        assert after is not None
        position = after.body
        found.append(position)

    assert [[TableKind().knows(PlanInput(each), plan) for plan in plans] for each in found] == known


@pytest.mark.parametrize(("before", "now"), [(("at", "id"), ("at",)), (("at",), ("at", "id"))])
def test_key_that_moves_to_the_primary_key_is_another_way_to_read(
    shop: Shop, before: tuple[str, ...], now: tuple[str, ...]
) -> None:
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, at int)")
    shop.run("INSERT INTO orders VALUES (1, 7), (2, 7)")
    assert shop.read(keys=before)

    with pytest.raises(
        SourceError, match=r"the bookmark is of rows by at .* and the keys are at .* now. Nothing was read"
    ):
        shop.read(keys=now)
