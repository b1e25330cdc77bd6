"""A small lake for tests of the Spark runtime: a raw folder, targets, and jobs over a store of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import lists_once
from airflow_bookmarks.spark.reader import BookmarkedReader
from airflow_bookmarks.spark.readers.files import Way
from airflow_bookmarks.store.bookmark_store import BookmarkStore

OpenSession = Callable[[], SparkSession]

LISTING_KEY = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


@dataclass
class Lake:
    """Folders below `root`, and jobs that keep their bookmark in `store`."""

    root: Path
    store: BookmarkStore
    spark: SparkSession
    another_session: OpenSession
    _seconds: Iterator[int] = field(default_factory=lambda: count(1_700_000_000))

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways in which this Spark can read a plan."""
        return ("paths", "directory") if lists_once(self.spark) else ("paths",)

    def path(self, *parts: str) -> str:
        return str(self.root.joinpath(*parts))

    def put(self, name: str, *lines: str, folder: str = "raw") -> Path:
        """Write a text file, each dated one second after the one before."""
        path = self.root / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        seconds = next(self._seconds)
        os.utime(path, (seconds, seconds))
        return path

    def job(self, name: str = "copy", **kwargs: Any) -> BookmarkedJob:
        return BookmarkedJob(self.spark, name, store=self.store, **kwargs)

    def read(self, job: BookmarkedJob, folder: str = "raw", **kwargs: Any) -> DataFrame:
        """Read text files by their lines."""
        return reader_of(job, "raw", **kwargs).format("text").load(self.path(folder))

    def run(self, name: str = "copy", **kwargs: Any) -> list[str]:
        """Make one whole run that reads the raw folder as text; return the lines read."""
        with self.job(name, **kwargs) as job:
            return lines_of(self.read(job))

    def copy(self, name: str = "copy", **kwargs: Any) -> dict[str, Any]:
        """Make one whole run that copies raw text to the target `<name>`; return its summary."""
        with self.job(name, **kwargs) as job:
            job.write(self.read(job), "out").text(self.path(name))
        assert job.summary is not None
        return job.summary

    def visible(self, target: str = "copy") -> list[str]:
        """Return the names of the files that a reader of a target may see."""
        root = self.root / target
        files = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
        return sorted(str(path) for path in files if not any(part[0] in "._" for part in path.parts))

    def staged(self, folder: str) -> list[Path]:
        """Return the data files below a folder whose name says that readers do not see them."""
        return [path for path in (self.root / folder).rglob("part-*") if path.is_file()]

    def head(self, name: str = "copy") -> Head:
        return self.store.head(name)

    def state(self, name: str = "copy") -> tuple[int, int, int, dict[str, int]]:
        """Return what a run that must not move anything may not move: version, runs, published, positions."""
        head = self.head(name)
        return head.version, head.run_number, head.published, {c: s.run.number for c, s in head.contexts.items()}


_OF_EVERY_KIND = ("on_source_change", "on_schema_change", "watermark_column", "count_rows")


def reader_of(job: BookmarkedJob, ctx: str, **options: Any) -> BookmarkedReader:
    """Return the reader of a context of files, with each option where it is given."""
    reader = job.read(ctx, **{name: value for name, value in options.items() if name in _OF_EVERY_KIND})
    of_files = {name: value for name, value in options.items() if name not in _OF_EVERY_KIND}
    return reader.files(**of_files) if of_files else reader


def lines_of(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.select("value").collect())


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def columns_of(frame: DataFrame) -> Sequence[tuple[str, str, bool]]:
    return [(f.name, f.dataType.simpleString(), f.nullable) for f in frame.schema.fields]
