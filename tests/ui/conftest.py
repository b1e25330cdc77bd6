"""One server with a seeded store for all tests of the page, and one browser; each test has visitors of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest
from playwright.sync_api import Browser, expect

from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.lifecycle.changes.sharing import share
from tests.thorough import mark_seldom
from tests.ui import chromium
from tests.ui.server import Server, running_server
from tests.ui.visit import AXE, HOW_TO_AXE, PATIENCE_MS, Scheme, Visit, visit
from tests.ui.world import World

# Jobs that one test each may change.
TRIALS = (
    "reset",
    "rewind",
    "set",
    "clean",
    "undo",
    "guarded",
    "turned_down",
    "asked",
    "raced",
    "refused",
    "keys",
    "held",
    "locked",
    "gone",
    "gaps",
    "shared",
    "shared_by_two",
    "handed",
    "owned",
    "misspelt",
    "retried",
)

# A job that no test changes.
LOOKED_AT = "trials.looked_at"

# Sharded jobs of the same kind, and how many virtual shards each has.
SPLIT, SHARDS = ("split", "split_reset", "split_rewind"), 3

expect.set_options(timeout=PATIENCE_MS)


class Visitors(Protocol):
    """Makes visits of this test."""

    def __call__(
        self, user: str | None = "admin", *, to: Server | None = None, width: int = 1280, scheme: Scheme = "light"
    ) -> Visit: ...


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `make test` leave out tests in a browser, but for those of what people do most: each loads the page anew.

    What the page shows and sends is tested without one too: its modules by vitest, its routes in `tests/plugin`.
    """
    if isinstance(item, pytest.Function) and "browser" in item.fixturenames:
        mark_seldom(item)


# Of the package, not of the session: while Playwright is there, `asyncio.run` can't be used in this thread.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Run a browser; without one the tests are skipped, or fail where nobody would notice that."""
    program = chromium.find()
    if program is None:
        if chromium.is_required():
            pytest.fail(chromium.HOW_TO)
        pytest.skip(chromium.HOW_TO)
    with chromium.running(program) as running:
        yield running


@pytest.fixture(scope="package")
def world(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a store with a past, and with the jobs that tests may change."""
    world = World.open(tmp_path_factory.mktemp("page") / "world")
    for name in TRIALS:
        world.small(f"trials.{name}")
    world.small(LOOKED_AT)
    for name in SPLIT:
        for number in range(SHARDS):
            world.small(shard_name(f"trials.{name}", number), runs=2)
    world.seed()
    world.hold("trials.held")
    world.hold("trials.locked")
    world.ask_twice("trials.asked")
    world.set_aside("trials.retried")
    world.set_aside(LOOKED_AT)
    share(world.store, LOOKED_AT, "flights", reason="both load it", who="admin")
    return world


@pytest.fixture(scope="package")
def server(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run the API server with that store."""
    with running_server(tmp_path_factory.mktemp("page") / "server", world.uri, look_below=str(world.root)) as running:
        yield running


@pytest.fixture
def visitors(browser: Browser, server: Server) -> Iterator[Visitors]:
    """Return what lets people come; at the end none of their browsers may have noticed a fault."""
    came: list[Visit] = []

    def come(
        user: str | None = "admin", *, to: Server | None = None, width: int = 1280, scheme: Scheme = "light"
    ) -> Visit:
        came.append(visit(browser, to or server, user, width=width, scheme=scheme))
        return came[-1]

    yield come
    problems = [problem for each in came for problem in each.problems()]
    for each in came:
        each.page.context.close()
    assert problems == []


@pytest.fixture
def axe() -> None:
    """Skip, or fail where nobody would notice that, if what looks for barriers is not installed."""
    if not AXE.is_file():
        if chromium.is_required():
            pytest.fail(HOW_TO_AXE)
        pytest.skip(HOW_TO_AXE)
