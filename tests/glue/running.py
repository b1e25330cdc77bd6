"""Runs of a script for AWS Glue in the session of a test, and tables of a Data Catalog in moto."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.job import Job, end_of_process
from airflow_bookmarks.glue.run import GlueRun, current_run

_SERDES = {
    "csv": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "open-csv": "org.apache.hadoop.hive.serde2.OpenCSVSerde",
    "json": "org.openx.data.jsonserde.JsonSerDe",
    "parquet": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    "orc": "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
}


@dataclass
class Script:
    """A script for Glue whose body is a function of its `GlueContext`, and a folder for its files."""

    spark: SparkSession
    root: Path
    name: str = "script"
    _seconds: Any = field(default_factory=lambda: count(1_700_000_000))

    @property
    def context(self) -> GlueContext:
        return GlueContext(self.spark)

    @property
    def glue_run(self) -> GlueRun:
        return current_run(self.spark)

    def path(self, *parts: str) -> str:
        return str(self.root.joinpath(*parts))

    def put(self, name: str, *lines: str) -> Path:
        """Write a text file, each dated one second after the one before."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        seconds = next(self._seconds)
        os.utime(path, (seconds, seconds))
        return path

    def run(self, body: Callable[[GlueContext], Any], option: str = "enable") -> Any:
        """Make one whole run of the script; return what its body returns."""
        context = self.context
        job = Job(context)
        job.init(self.name, {"job_bookmark_option": f"job-bookmark-{option}"})
        try:
            found = body(context)
        except BaseException:  # a simulated death and SystemExit are no Exception
            end_of_process()  # as that of the script's process, which ends here
            raise
        job.commit()
        return found

    def rows(self, option: str = "enable", **options: Any) -> list[tuple[Any, ...]]:
        """Make one run that reads by `from_options`; return the rows."""
        return list(self.run(lambda context: rows_of(context.create_dynamic_frame.from_options(**options)), option))

    def table_rows(self, option: str = "enable", **options: Any) -> list[tuple[Any, ...]]:
        """Make one run that reads by `from_catalog`; return the rows."""
        return list(self.run(lambda context: rows_of(context.create_dynamic_frame.from_catalog(**options)), option))


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a frame of either kind, sorted."""
    data: DataFrame = frame if isinstance(frame, DataFrame) else frame.toDF()
    return sorted((tuple(row) for row in data.collect()), key=repr)


@dataclass(frozen=True)
class Tables:
    """Tables of one database in the Data Catalog of a moto server."""

    client: Any
    database: str

    def add(
        self,
        name: str,
        location: str | None,
        columns: Mapping[str, str],
        *,
        serde: str | None = "csv",
        keys: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
        serde_parameters: Mapping[str, str] | None = None,
    ) -> None:
        storage: dict[str, Any] = {"Columns": _columns(columns), "Parameters": {}}
        if location is not None:
            storage["Location"] = location
        if serde is not None:
            storage["SerdeInfo"] = {
                "SerializationLibrary": _SERDES.get(serde, serde),
                "Parameters": dict(serde_parameters or {}),
            }
        self.client.create_table(
            DatabaseName=self.database,
            TableInput={
                "Name": name,
                "StorageDescriptor": storage,
                "PartitionKeys": _columns(keys or {}),
                "Parameters": dict(parameters or {}),
            },
        )

    def add_partition(self, table: str, location: str | None, *values: str) -> None:
        storage = {} if location is None else {"Location": location}
        self.client.create_partition(
            DatabaseName=self.database,
            TableName=table,
            PartitionInput={"Values": list(values), "StorageDescriptor": storage},
        )


def _columns(columns: Mapping[str, str]) -> Sequence[dict[str, str]]:
    return [{"Name": name, "Type": kind} for name, kind in columns.items()]
