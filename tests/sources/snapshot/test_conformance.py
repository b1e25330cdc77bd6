"""The conformance suite of sources over tables that are compared whole, on PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.files.opener import open_any_filesystem
from airflow_bookmarks.sources.jdbc.recipe import Relation
from airflow_bookmarks.sources.snapshot.kind import SnapshotKind
from airflow_bookmarks.sources.snapshot.position import SnapshotPlan
from airflow_bookmarks.sources.snapshot.source import ComparedTable, SnapshotSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.source_conformance import CTX, SourceConformance
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.sources.snapshot.copies import JsonSnapshots, Rows, changed


class TestComparedTables(SourceConformance):
    """An item is a row of a table. Without Spark a snapshot is a file of JSON."""

    @pytest.fixture(params=["postgresql", "mariadb"], autouse=True)
    def _database(self, request: pytest.FixtureRequest, _world: None) -> Iterator[None]:
        with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
            self.shop = Shop(login)
            self.shop.run("CREATE TABLE orders (id int)")
            yield

    def prepare(self) -> None:
        self.store = BookmarkStore(self.store.table, self.store.namespace, state_uri=str(self.folder / "state"))

    def kind(self) -> SnapshotKind:
        return SnapshotKind()

    def source(self) -> SnapshotSource:
        login = self.shop.login
        table = ComparedTable(address="conn:shop", dialect=login.dialect, relation=Relation(("orders",)), keys=("id",))
        snapshots = JsonSnapshots(self._rows)
        return SnapshotSource(table, lambda: open_database(login), snapshots, open_any_filesystem, "context 'orders'")

    def _rows(self) -> Rows:
        return {int(number): None for (number,) in self.shop.rows("SELECT id FROM orders")}

    def arrive(self, number: int) -> None:
        self.shop.run(f"INSERT INTO orders VALUES ({number})")

    def items(self, plan: SnapshotPlan) -> Iterable[int]:
        return changed(plan)

    def change(self, number: int) -> None:
        """Cut short what a plan reads: the snapshots. The table itself may change as it likes."""
        for file in Path(self.folder / "state").rglob("rows.json"):
            file.write_text("[")

    def test_stored_plan_leads_where_the_source_has_led(self) -> None:
        """As in the suite, but by the plan of the run itself: each other plan has a snapshot of its own."""
        self.arrive(1)
        self._run()
        before = self._found()
        self.arrive(2)
        self._run()
        kind, after = self.kind(), self._found()
        run = self.store.committed_run(self.job, 2)
        assert run is not None
        stored = kind.decode(self.store.blobs.get(run.plans[CTX].body))

        position = kind.advance(stored, before)

        assert position is not None
        assert position.body == after.position
        assert position.watermark == self.store.head(self.job).contexts[CTX].watermark
        assert (kind.knows(after, stored), kind.knows(before, stored)) == (True, False)
