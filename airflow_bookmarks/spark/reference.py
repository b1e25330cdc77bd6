"""`job.reference(name)`: a lookup that is read once for all batches of a loop, and is not part of the bookmark."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.lifecycle.state.guard import Guarded, guarded
from airflow_bookmarks.spark.readers.by_format import ByFormat, set_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Definition:
    """What a reference reads: `table`, or files or a data source of a format."""

    table: str | None = None
    format: str | None = None
    schema: StructType | str | None = None
    options: tuple[tuple[str, str], ...] = ()
    paths: tuple[str, ...] = ()

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return a frame over it."""
        if self.table is not None:
            return spark.read.options(**dict(self.options)).table(self.table)
        reader = spark.read if self.format is None else spark.read.format(self.format)
        if self.schema is not None:
            reader = reader.schema(self.schema)
        reader = reader.options(**dict(self.options))
        return reader.load(list(self.paths)) if self.paths else reader.load()

    def difference(self, other: Definition) -> str:
        """Say in words what `other` has that this one has not; of options the names alone: a value may be a secret."""
        if self.table != other.table:
            return f"{self._what()}, and now {other._what()}"
        told = [
            f"{name} {_shown(mine)}, and now {_shown(its)}"
            for name, mine, its in (("format", self.format, other.format), ("paths", self.paths, other.paths))
            if mine != its
        ]
        told += ["another schema"] if self.schema != other.schema else []
        options = sorted({name for name, _ in set(self.options) ^ set(other.options)})
        told += [f"other values of the options {', '.join(options)}"] if options else []
        return "; ".join(told)

    def _what(self) -> str:
        return _shown(self.paths) if self.table is None else f"table {self.table!r}"


def _shown(value: str | tuple[str, ...] | None) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(repr, value)) or "no path"
    return "the default" if value is None else repr(value)


class References(Guarded):
    """The references of one loop, or of one run: each is read when it is first used, and kept until `release`.

    Args:
        span: how long that is, for the log: "loop" or "run".
    """

    def __init__(self, span: str) -> None:
        super().__init__()
        self._span = span
        self._kept: dict[str, tuple[Definition, DataFrame]] = {}

    @guarded
    def frame(self, job: str, name: str, definition: Definition, spark: SparkSession) -> DataFrame:
        """Return the one frame of a name.

        Raises:
            MisuseError: the name is that of something else.
        """
        if name not in self._kept:
            log.info("bookmark %s, reference %s: read once, and kept for this %s", job, name, self._span)
            self._kept[name] = definition, definition.frame(spark).persist()
        known, frame = self._kept[name]
        if known != definition:
            raise MisuseError(
                f"job {job!r}: reference {name!r} was read before, and is asked for with something else: "
                f"{known.difference(definition)}. Nothing was read or changed. Give each reference a name of its own."
            )
        return frame

    @guarded
    def release(self) -> None:
        """Let Spark forget what was kept."""
        for _, frame in self._kept.values():
            frame.unpersist()
        self._kept.clear()


@dataclass(slots=True)
class ReferenceReader(ByFormat):
    """Reads a lookup, with the method names of `spark.read`. Made by `BookmarkedJob.reference`."""

    job: str
    name: str
    spark: SparkSession
    references: References
    _format: str | None = field(default=None, init=False)
    _schema: StructType | str | None = field(default=None, init=False)
    _options: dict[str, str] = field(default_factory=dict, init=False)

    def format(self, source: str) -> ReferenceReader:
        """Set the format: any that Spark knows."""
        self._format = source
        return self

    def schema(self, schema: StructType | str) -> ReferenceReader:
        """Set the schema, as a StructType or in DDL."""
        self._schema = schema
        return self

    def option(self, key: str, value: Any) -> ReferenceReader:
        """Set an option of the format."""
        set_option(self._options, key, value)
        return self

    def load(
        self,
        path: str | Sequence[str] | None = None,
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        """Return a frame over `path`: the same one for each batch of the loop, read once and kept.

        Raises:
            MisuseError: the name is that of another reference of this loop.
        """
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        paths = (path,) if isinstance(path, str) else tuple(path or ())
        return self._kept(replace(self._definition(), format=self._format, paths=paths))

    def table(self, name: str) -> DataFrame:
        """Return a frame over a table of Spark's catalog; see `load`."""
        return self._kept(replace(self._definition(), table=name, schema=None))

    def _has_no(self, method: str) -> OptionError:
        return OptionError(
            f"job {self.job!r}, reference {self.name!r}: {method}(...) is not here. Nothing was read or changed. Give "
            f"the same as options: .format({method!r}).options(...).load()."
        )

    def _definition(self) -> Definition:
        options = sorted((key.lower(), value) for key, value in self._options.items())
        return Definition(schema=self._schema, options=tuple(options))

    def _kept(self, definition: Definition) -> DataFrame:
        return self.references.frame(self.job, self.name, definition, self.spark)
