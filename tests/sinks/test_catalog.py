"""Tables of a catalog over the folders of files, as far as that needs neither Spark nor Glue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, PublishError, SourceError
from airflow_bookmarks.core.files.file_list import encode_moves
from airflow_bookmarks.core.rules.territory import staging_root
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.files.catalog import CatalogPartition, CatalogTable, TableDefinition, partitions_of
from airflow_bookmarks.sinks.files.glue import GlueCatalog
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.sink import PublishSteps
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.sink_ground import JOB, stored_output

KEY = RunKey(1, 1)


@pytest.fixture
def blobs() -> Iterator[BlobStore]:
    with memory_store() as store:
        yield store.blobs


@dataclass
class Catalog:
    """A catalog that keeps what it was asked for."""

    added: list[tuple[str, str, list[str]]] = field(default_factory=list)

    def check(self, table: str, folder: str, columns: Sequence[str]) -> str:
        raise NotImplementedError

    def fits(self, table: str, folder: str, columns: Sequence[str]) -> str:
        raise NotImplementedError

    def outside(self, table: str, folder: str) -> tuple[str, str] | None:
        raise NotImplementedError

    def define(self, table: str, folder: str, definition: TableDefinition) -> None:
        raise NotImplementedError

    def add(self, table: str, folder: str, partitions: Sequence[CatalogPartition]) -> None:
        self.added.append((table, folder, [each.folder for each in partitions]))


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("glue:sales.orders", CatalogTable("glue", "sales.orders")),
        ("spark:`a:b`.orders", CatalogTable("spark", "`a:b`.orders")),
        ("orders", CatalogTable("spark", "orders")),
        ("`a:b`.orders", CatalogTable("spark", "`a:b`.orders")),
    ],
)
def test_table_is_read_from_its_text_and_back(text: str, table: CatalogTable) -> None:
    assert CatalogTable.parse(text) == CatalogTable.parse(str(table)) == table


@pytest.mark.parametrize("text", ["", " ", "glue:", "spark: ", "hive:sales.orders", "GLUE:sales.orders"])
def test_text_that_names_no_table_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"is no table of a catalog, such as 'glue:sales\.orders'"):
        CatalogTable.parse(text)


def test_partitions_are_those_of_the_files_each_once() -> None:
    files = [
        "/t/day=2/hour=1/b",
        "/t/day=1/hour=1/a",
        "/t/day=2/hour=1/c",
        "/t/day=__HIVE_DEFAULT_PARTITION__/hour=1/d",
    ]
    assert [each.folder for each in partitions_of(files, "/t/")] == [
        "day=1/hour=1",
        "day=2/hour=1",
        "day=__HIVE_DEFAULT_PARTITION__/hour=1",
    ]
    assert partitions_of(["/t/a", "/t/b"], "/t") == []


def _entry(tmp_path: Path, blobs: BlobStore, table: str) -> OutputEntry:
    """Stage a file of an output that goes to a table, and store what its publish moves."""
    target = str(tmp_path / "out")
    place = f"{staging_root(target, None, JOB.namespace, JOB.job)}/{KEY}/out"
    staged = Path(place, "day=1", "part-0")
    staged.parent.mkdir(parents=True)
    staged.write_text("1")
    moves = [(str(staged), f"{target}/day=1/run-1.1-part-0")]
    return OutputEntry("files", target, place, {"catalog_table": table}, publish=blobs.put(encode_moves(moves)))


def test_publish_adds_the_partitions_of_what_it_has_moved(tmp_path: Path, blobs: BlobStore) -> None:
    catalog = Catalog()
    output = stored_output(_entry(tmp_path, blobs, "spark:sales.orders"), KEY, blobs)
    sink = FilesSink({"spark": catalog})
    for _ in range(2):  # a publish may be done again
        publication = sink.prepare(output)
        assert publication is not None
        publication.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
    assert catalog.added == [("sales.orders", str(tmp_path / "out"), ["day=1"])] * 2


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("spark:sales.orders", "only Spark reaches the catalog of the table sales.orders, .*stays due"),
        ("hive:x", "is no table of a catalog.*stays due"),
    ],
)
def test_process_that_does_not_reach_the_catalog_moves_nothing(
    tmp_path: Path, blobs: BlobStore, table: str, words: str
) -> None:
    output = stored_output(_entry(tmp_path, blobs, table), KEY, blobs)
    with pytest.raises(PublishError, match=words):
        FilesSink().prepare(output)
    assert not (tmp_path / "out" / "day=1").exists()


class Answers(GlueCatalog):
    """A Data Catalog that has each partition already, and tells of one at a time where it lies: moto tells of all."""

    def __init__(self, told: Sequence[str]) -> None:
        self.told = told

    def _asked(self, operation: str, table: str, **given: Any) -> Mapping[str, Any]:
        if operation == "get_table":
            return {"Table": {"StorageDescriptor": {"Location": "/lake/orders"}}}
        if operation == "batch_create_partition":
            values = [each["Values"] for each in given["PartitionInputList"]]
            there = {"ErrorCode": "AlreadyExistsException"}
            return {"Errors": [{"PartitionValues": each, "ErrorDetail": there} for each in values]}
        first, *rest = (each["Values"] for each in given["PartitionsToGet"])
        location = {"Location": f"/lake/orders/day={first[0]}"}
        got = [{"Values": first, "StorageDescriptor": location}] if first[0] in self.told else []
        return {"Partitions": got, "UnprocessedKeys": [{"Values": each} for each in rest]}


def test_glue_is_asked_for_the_folders_that_it_has_not_told_yet() -> None:
    days = [CatalogPartition(f"day={day}", (("day", day),)) for day in "xyz"]
    Answers("xyz").add("sales.orders", "/lake/orders", days)
    with pytest.raises(SourceError, match=r"does not tell where 2 partition\(s\) lie that it has, the first \['y'\]"):
        Answers("x").add("sales.orders", "/lake/orders", days)
