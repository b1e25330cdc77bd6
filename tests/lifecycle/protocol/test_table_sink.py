"""A run that writes to a table is finished by the next one without its script, wherever it died (SINK-4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, CleanRefusedError, OptionError, PublishError
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sinks.staging import Staged
from airflow_bookmarks.sources.files.planner import FileSource
from tests.databases.servers import new_database
from tests.lifecycle.shop import FILES, Shop
from tests.sinks.jdbc.table_ground import OneLogin, TableGround
from tools.servers import DatabaseServer


@pytest.fixture
def table(postgresql_server: DatabaseServer, shop: Shop) -> Iterator[TableGround]:
    """Make an empty table, whose database the store finds the login of."""
    with new_database(postgresql_server) as login:
        shop.store.databases = OneLogin(login)
        yield TableGround(login, shop.store.blobs)


def copy(shop: Shop, table: TableGround, run: RunSession) -> None:
    """Stage the lines of the planned files."""
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    lines = [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]
    table.load(run.place("out", table.request), [(line,) for line in lines])
    run.staged("out", Staged((), rows=len(lines)))


def dying_at(wanted: Failpoint) -> Callable[[Failpoint], None]:
    def at(point: Failpoint) -> None:
        if point is wanted:
            raise KeyboardInterrupt

    return at


@pytest.mark.parametrize(
    "point",
    [
        Failpoint.PLACED,
        Failpoint.STAGED,
        Failpoint.BEFORE_COMMIT,
        Failpoint.COMMITTED,
        Failpoint.PUBLISHING,
        Failpoint.MOVED,
        Failpoint.PUBLISHED,
        Failpoint.MARKED,
        Failpoint.SWEPT,
    ],
)
def test_each_line_is_there_once_wherever_a_run_dies(shop: Shop, table: TableGround, point: Failpoint) -> None:
    shop.put("a.txt", "a", "b")
    run = shop.begin()
    run._leased.environment = RunEnvironment(at=dying_at(point))
    with pytest.raises(KeyboardInterrupt):
        _make(shop, table, run)
    run._leased.give_back()
    shop.put("b.txt", "c")
    following = shop.begin()  # recovers, by the stored output alone
    copy(shop, table, following)
    following.commit()
    assert table.visible() == ["a", "b", "c"]
    assert table.stage_tables() == []


def _make(shop: Shop, table: TableGround, run: RunSession) -> None:
    copy(shop, table, run)
    run.commit()


def test_publish_that_is_due_waits_for_its_database(
    shop: Shop, table: TableGround, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    copy(shop, table, run)
    nowhere = DatabaseLogin("postgresql", "127.0.0.1", 1, "dw", "etl", "hunter2")
    shop.store.databases = OneLogin(nowhere)
    with pytest.raises(PublishError, match=r"run 1\.1, output 'out': .*Nothing of it was published.*stays due"):
        run.commit()
    run.abort("its publish is due")
    assert table.visible() == []
    shop.store.databases = OneLogin(table.login)
    with caplog.at_level(logging.INFO):
        shop.begin().abort("done")
    assert "1 row published to conn:dw#public.dim" in caplog.text
    assert "hunter2" not in caplog.text
    assert table.visible() == ["a"]


def test_run_that_discards_its_output_leaves_the_table_alone(shop: Shop, table: TableGround) -> None:
    run = shop.begin()
    copy(shop, table, run)
    run.commit()
    assert (table.visible(), table.stage_tables()) == ([], [])


def test_what_was_published_is_neither_cleaned_nor_replayed(shop: Shop, table: TableGround) -> None:
    shop.put("a.txt", "a")
    _make(shop, table, shop.begin())
    with pytest.raises(CleanRefusedError, match=r"whose rows don't tell which run has written them.*without clean"):
        reset(shop.store, "copy", clean=True, reason="a test", who="me")
    with pytest.raises(ChangeRefusedError, match="whose rows don't tell"):
        ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)
    assert table.visible() == ["a"]


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_without_a_commit_writes_to_no_table(shop: Shop, table: TableGround, option: str) -> None:
    shop.put("a.txt", "a")
    run = shop.side(option=option)
    with pytest.raises(OptionError, match="Write the output of such a run elsewhere"):
        copy(shop, table, run)
    run.abort("refused")
    assert table.stage_tables() == []


def test_doctor_finds_nothing_wrong_with_a_published_table(shop: Shop, table: TableGround) -> None:
    shop.put("a.txt", "a")
    _make(shop, table, shop.begin())
    assert list(examine(shop.store)) == []
