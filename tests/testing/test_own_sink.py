"""A kind of sink of a user's own passes the conformance suite, and a script that dies leaves its rows there once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.sink_conformance import CommittingSinkConformance
from tests.testing.own_sink import WarehouseSink, lines_of, load_orders


class Ground:
    """An empty file as the target."""

    def __init__(self, store: BookmarkStore, target: str) -> None:
        self.sink, self.blobs, self.target = WarehouseSink(), store.blobs, target
        self.request = StagingRequest("warehouse", target)

    def write(self, output: StoredOutput, fence: int, rows: Sequence[str]) -> bool:
        token = f"{output.territory.namespace}/{output.territory.job}/0/{output.run.key.number}/{fence}"
        return self.sink.write(self.target, token, rows)

    def visible(self) -> list[str]:
        return lines_of(self.target)


class TestWarehouse(CommittingSinkConformance):
    @pytest.fixture
    def ground(self, bookmark_store: BookmarkStore, tmp_path: Path) -> Ground:
        return Ground(bookmark_store, str(tmp_path / "warehouse.db"))


@pytest.fixture
def bookmark_store() -> Iterator[BookmarkStore]:
    """Open an empty store."""
    with memory_store() as store:
        yield store


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sink known to this process, as the entry point of an installed package does."""
    monkeypatch.setitem(SINKS.sinks, WarehouseSink.kind, WarehouseSink())


def die_while_loading(store: BookmarkStore, rows: list[str], target: str, lands: bool) -> None:
    with BookmarkedJob(name="orders.load", store=store) as job:
        job.state("cursor").set(3)
        job.active_run.place("rows", StagingRequest("warehouse", target))
        if lands:
            WarehouseSink().write(target, job.run_token, rows)
        raise KeyboardInterrupt


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("lands", [False, True], ids=["before its rows land", "after its rows have landed"])
def test_script_that_dies_leaves_each_row_once(bookmark_store: BookmarkStore, tmp_path: Path, lands: bool) -> None:
    target = str(tmp_path / "warehouse.db")
    arrived = ["a", "b"]
    load_orders(bookmark_store, lambda after: arrived[after:], target)
    arrived.append("c")
    with pytest.raises(KeyboardInterrupt):
        die_while_loading(bookmark_store, ["c"], target, lands)
    arrived.append("d")
    load_orders(bookmark_store, lambda after: arrived[after:], target)

    assert lines_of(target) == ["a", "b", "c", "d"]
    committed = [run for run in bookmark_store.runs("orders.load") if run.state is RunState.PUBLISHED]
    assert len(committed) == (3 if lands else 2)
