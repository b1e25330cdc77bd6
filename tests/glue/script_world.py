"""A world for scripts written for AWS Glue: their files, tables and store, and runs of them in the session of a test.

Beside each script of `scripts/` lies a table of what it is given and what has to come out, `<script>.toml`:

    arguments    of the script, beside those of Glue; `{lake}` is the folder of the world
    tables       of the Data Catalog: database, location, format, columns, keys, partitions, parameters
    files        what is there before the first run, and what is new before the second; the third finds nothing new
    registered   the tables that the runs make in the Data Catalog, with their columns
    read         for each context how many files each run reads
    outputs      for each target: its format, its rows after each run, and those of the last as text, sorted
    disabled     the rows of the target after each of two runs with disable; default: everything, then twice that
    thorough     whether only `make test-all` and `make glue-scripts` run it: it is much like another one
    seldom       whether `make test` leaves it out, and the matrix runs it
    database     whether it needs a database, and so a Spark with its driver
    watermarks   whether the script keeps some in DynamoDB
    unmanaged    of a target that the script writes by itself, at least once: it is not killed
    behind       the rows of the target after a death behind the commit, where the next try, which is a run of its own
                 then, adds some without new input
    bounded      whether a run leaves files for the next one: a try after a death behind the commit reads those
    exits        whether the script may end by sys.exit(0) after its commit
"""

from __future__ import annotations

import runpy
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import airflow_bookmarks.glue
from airflow_bookmarks.glue.job import end_of_process
from airflow_bookmarks.glue.run import current_run, forget_runs
from airflow_bookmarks.lifecycle.protocol.failpoint import FaultHook
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.testing.crash import SimulatedCrash

FOLDER = Path(__file__).parent / "scripts"
PATH = Path(airflow_bookmarks.glue.__file__).parent / "path"
_SERDES = {
    "csv": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "json": "org.openx.data.jsonserde.JsonSerDe",
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
}


@dataclass
class ScriptWorld:
    """The files, tables and store of one script.

    `catalog` is a client of the Data Catalog, None for a script without tables.
    """

    name: str
    root: Path
    spark: SparkSession
    catalog: Any
    monkeypatch: pytest.MonkeyPatch
    told: Mapping[str, Any] = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.told = tomllib.loads((FOLDER / f"{self.name}.toml").read_text())
        self.lake.mkdir(parents=True)
        self.spark.conf.set("spark.bookmarks.store", self.store_uri)
        self._make_tables()

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    @property
    def store_uri(self) -> str:
        return f"sqlite:///{self.root}/bookmarks.db?namespace=test&create=true"

    # ---- what is there

    def put(self, when: str) -> None:
        """Write the files of a time: "first" or "second"."""
        for path, text in self.told.get("files", {}).get(when, {}).items():
            file = self.lake / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.lstrip("\n"))
        for table in self.told.get("tables", []):
            for location, *values in table.get("partitions", {}).get(when, []):
                self.catalog.create_partition(
                    DatabaseName=table["database"],
                    TableName=table["name"],
                    PartitionInput={
                        "Values": values,
                        "StorageDescriptor": {"Location": str(self.lake / location)},
                    },
                )

    def _make_tables(self) -> None:
        for table in self.told.get("tables", []):
            database = table["database"]
            if database not in self.databases:
                self.catalog.create_database(DatabaseInput={"Name": database})
            self.catalog.create_table(
                DatabaseName=database,
                TableInput={
                    "Name": table["name"],
                    "StorageDescriptor": {
                        "Columns": _columns(table["columns"]),
                        "Location": str(self.lake / table["location"]),
                        "SerdeInfo": {
                            "SerializationLibrary": _SERDES[table["format"]],
                            "Parameters": table.get("serde_parameters", {}),
                        },
                    },
                    "PartitionKeys": _columns(table.get("keys", {})),
                    "Parameters": table.get("parameters", {}),
                },
            )

    @property
    def databases(self) -> set[str]:
        """The databases in the catalog."""
        return {database["Name"] for database in self.catalog.get_databases()["DatabaseList"]}

    def drop_tables(self) -> None:
        """Forget the tables: other worlds have some of the same names."""
        for database in {table["database"] for table in self.told.get("tables", [])} & self.databases:
            self.catalog.delete_database(Name=database)

    # ---- runs

    def run(
        self, option: str = "enable", *given: str, attempt: int = 1, at: FaultHook | None = None
    ) -> Mapping[str, Any]:
        """Run the script once, as a process of its own would; return the summary of its run, empty without one.

        Args:
            option: of the bookmark.
            given: more arguments.
            attempt: which try of the same execution it is.
            at: what happens at the points of the protocol.
        """
        self.runs += attempt == 1
        self.spark.conf.set("spark.bookmarks.attempt", str(attempt))
        argv = [
            str(FOLDER / f"{self.name}.py"),
            *("--JOB_NAME", self.name, "--JOB_RUN_ID", f"jr_{self.runs}", "--TempDir", str(self.root / "temp")),
            *("--job-bookmark-option", f"job-bookmark-{option}"),
            *(text.replace("{lake}", str(self.lake)) for text in self.told.get("arguments", [])),
            *given,
        ]
        is_killed = False
        try:
            with self.monkeypatch.context() as patch, _faults(at):
                patch.setattr(sys, "argv", argv)
                patch.syspath_prepend(str(PATH))
                context = self.spark.sparkContext
                patch.setattr(SparkContext, "__new__", lambda cls, *args, **kwargs: context)
                patch.setattr(SparkContext, "__init__", lambda self, *args, **kwargs: None)
                self._play(argv[0])
            job = current_run(self.spark).job
            return {} if job is None or job.summary is None else job.summary
        except SimulatedCrash:
            is_killed = True
            raise
        finally:
            if not is_killed:
                end_of_process()
            forget_runs()

    def _play(self, path: str) -> None:
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            if not self.told.get("exits") or ended.code:
                raise

    # ---- what came out

    def registered(self) -> dict[str, list[str]]:
        """Return the columns of the tables in the catalog that the runs have to make; none of those that are absent."""
        made = {}
        for name in self.told.get("registered", {}):
            database = self.told["tables"][0]["database"]
            for table in self.catalog.get_tables(DatabaseName=database, Expression=name)["TableList"]:
                made[name] = [column["Name"] for column in table["StorageDescriptor"]["Columns"]]
        return made

    def count(self, output: str) -> int:
        """Return how many rows a target holds."""
        return len(self.rows(output))

    def rows(self, output: str) -> list[list[str]]:
        """Return the rows of a target as text, sorted; those of an absent one are none."""
        told = self.told["outputs"][output]
        path = self.lake / told.get("path", output)
        if not any(_is_data(file.relative_to(path)) for file in path.rglob("*") if file.is_file()):
            return []
        reader = self.spark.read.options(**told.get("options", {}))
        frame = reader.format(told.get("format", "parquet")).load(str(path))
        columns: Sequence[str] = told.get("columns", frame.columns)
        return sorted(
            ["" if value is None else str(value) for value in row] for row in frame.select(*columns).collect()
        )


@contextmanager
def _faults(at: FaultHook | None) -> Iterator[None]:
    if at is None:
        yield
        return
    with runs_in(lambda _: RunEnvironment(at=at)):
        yield


def _is_data(path: Path) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.parts)


def _columns(columns: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Name": name, "Type": kind} for name, kind in columns.items()]
