"""PostgreSQL in the place of Redshift, for tests of the sink `redshift`: all its statements run there, but for COPY."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_bookmarks.core.database.copy.columns import CopyColumn
from airflow_bookmarks.core.database.copy.load import CopyLoad
from airflow_bookmarks.core.database.copy.token import CopyToken
from airflow_bookmarks.core.database.dialects.quoting import escaped_text, quoted
from airflow_bookmarks.core.database.script import NO_SCRIPT, PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sinks.redshift.client import CopyClient
from airflow_bookmarks.sinks.redshift.place import CopyTarget, name_of, rows_folder
from airflow_bookmarks.sinks.redshift.sink import RedshiftSink
from airflow_bookmarks.sinks.redshift.staging import CopyStaging
from airflow_bookmarks.sinks.sink import StagedSink, StoredOutput
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME, stored_output
from tests.sinks.jdbc.table_ground import OneLogin

ADDRESS = DatabaseAddress.parse("conn:dw")
FILES = LocalFileSystem()
TEXT = CopyColumn.of("row", "string")


class PostgresCopies:
    """PostgreSQL, which has no COPY of a manifest: what the manifest names comes by INSERT instead."""

    def open(self, login: DatabaseLogin) -> Database:
        return open_database(replace(login, dialect="postgresql"))

    def why_not_from(self, folder: str) -> str | None:
        return None

    def loading(self, load: CopyLoad, name: str) -> Sequence[str]:
        assert load.manifest is not None
        with FILES.open(load.manifest) as manifest:
            entries = json.load(manifest)["entries"]
        return [statement for entry in entries for statement in inserts(entry, name)]


def inserts(entry: dict[str, Any], name: str) -> list[str]:
    """Return the statements that insert what lies in one file of a manifest, as COPY would load it: by its order."""
    path = Path(entry["url"])
    assert entry["mandatory"], "a COPY would pass over a file that is gone"
    if path.stat().st_size != entry["meta"]["content_length"]:
        raise OSError(f"{path} has another size than the manifest says")
    rows = pq.read_table(path).to_pylist()
    return [f"INSERT INTO {quoted('redshift', name)} VALUES ({', '.join(map(literal, row.values()))})" for row in rows]


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"'{value!r}'"
    return escaped_text(value) if isinstance(value, str) else str(value)


class CopyGround:
    """A table whose one column is the row as the conformance suite sees it, staged below a local folder."""

    def __init__(
        self,
        login: DatabaseLogin,
        blobs: BlobStore,
        root: Path,
        *,
        is_there: bool = True,
        script: PublishScript = NO_SCRIPT,
        client: CopyClient | None = None,
    ) -> None:
        self.login, self.blobs, self.root = login, blobs, root
        self.client = client or PostgresCopies()
        self.sink: StagedSink = RedshiftSink(OneLogin(login), self.client)
        self.target = CopyTarget(ADDRESS, SinkTable("public", "dim"), (TEXT,), script=script)
        folder = root / "tmp"
        stats = self.target.stats()
        self.request = StagingRequest(RedshiftSink.kind, str(self.target), str(folder), stats=stats)
        beside = folder / "test" / "other" / "1.1" / "out" / "beside"
        beside.parent.mkdir(parents=True)
        beside.write_text("beside")
        (folder / "beside").write_text("beside")
        self.execute("CREATE TABLE beside (id int)")
        if is_there:
            self.execute('CREATE TABLE dim ("row" varchar(100))')

    def opened(self) -> AbstractContextManager[Database]:
        return open_database(self.login)

    def execute(self, statement: str) -> int:
        with self.opened() as database:
            return database.execute(statement)

    def query(self, query: str) -> list[tuple[Any, ...]]:
        with self.opened() as database:
            return database.rows(query)

    def placed(self, key: RunKey) -> StoredOutput:
        entry, _ = self.sink.stage(JOB, key, NAME, self.request)
        return stored_output(entry, key, self.blobs)

    def staged_output(self, key: RunKey, rows: Sequence[str]) -> StoredOutput:
        """Return the output of a run that has staged these rows and committed."""
        output = self.placed(key)
        return stored_output(self.stage(output, rows), key, self.blobs)

    # ---- what the conformance suite asks for

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        place, name = output.entry.place, name_of(output.entry.place)
        assert name is not None
        staging, token = CopyStaging("job 'job', output 'out'", self.target), CopyToken("public", name)
        with self.opened() as database:
            staging.check(database)
            staging.create(database, token, "test/job/out")
        folder = Path(rows_folder(place))
        folder.mkdir(parents=True)
        for number, row in enumerate(rows):
            pq.write_table(pa.table({"c0": [row]}), folder / f"part-{number}.parquet")
        listed = [(each.path, each.size_bytes) for each in FILES.list(str(folder)).files]
        with self.opened() as database:
            staging.seal(database, FILES, token, place, listed, len(rows))
        return replace(output.entry, stats={**output.entry.stats, "rows": len(rows), "files": len(listed)})

    def put(self, row: str) -> None:
        self.execute(f"INSERT INTO dim VALUES ({literal(row)})")

    def visible(self) -> list[str]:
        return sorted(str(row) for (row,) in self.query('SELECT "row" FROM dim'))

    def staged(self) -> set[RunKey]:
        keys = [path.name.split(".") for path in (self.root / "tmp" / "test" / "job").glob("*")]
        return {RunKey(int(number), int(fence)) for number, fence in keys}

    def outside(self) -> object:
        tables = self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        files = [path for path in self.root.rglob("*") if path.is_file() and "job" not in path.parts]
        return [{name for (name,) in tables} - {"dim", "_bookmarks_copies"}, sorted(files)]
