"""The common part of the readers: options as Spark takes them, and a method for each format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pyspark.sql import DataFrameReader

from airflow_bookmarks.spark.spark_names import by_name, is_of_reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.errors import OptionError


class ByFormat(ABC):
    """The methods of `spark.read` that follow from `option` and `load`."""

    __slots__ = ()

    @abstractmethod
    def option(self, key: str, value: Any) -> Self:
        """Set an option of the format."""

    @abstractmethod
    def load(
        self,
        path: str | Sequence[str],
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        """Return a frame over `path`."""

    def options(self, **options: Any) -> Self:
        """Set several options of the format."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def csv(self, path: str | Sequence[str], *values: Any, **options: Any) -> DataFrame:
        """Read CSV files; arguments as of Spark's reader, see `load`."""
        return self._load_as("csv", path, values, options)

    def json(self, path: str | Sequence[str], *values: Any, **options: Any) -> DataFrame:
        """Read JSON files; arguments as of Spark's reader, see `load`."""
        return self._load_as("json", path, values, options)

    def text(self, path: str | Sequence[str], *values: Any, **options: Any) -> DataFrame:
        """Read text files by line; arguments as of Spark's reader, see `load`."""
        return self._load_as("text", path, values, options)

    def parquet(self, *paths: str, **options: Any) -> DataFrame:
        """Read Parquet files; see `load`."""
        return self.load(paths, "parquet", **options)

    def orc(self, path: str | Sequence[str], *values: Any, **options: Any) -> DataFrame:
        """Read ORC files; arguments as of Spark's reader, see `load`."""
        return self._load_as("orc", path, values, options)

    def xml(self, path: str | Sequence[str], *values: Any, **options: Any) -> DataFrame:
        """Read XML files, one row for each element that `rowTag` names; arguments as of Spark's reader, see `load`."""
        return self._load_as("xml", path, values, options)

    def _load_as(
        self, name: str, path: str | Sequence[str], values: Sequence[Any], options: Mapping[str, Any]
    ) -> DataFrame:
        named = by_name(DataFrameReader, name, values, options)
        return self.load(path, name, named.pop("schema", None), **named)

    def __getattr__(self, name: str) -> NoReturn:
        if not is_of_reader(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise self._has_no(name)

    @abstractmethod
    def _has_no(self, method: str) -> OptionError:
        """Return what to raise for a method of Spark's reader that has no meaning here."""


def set_option(options: dict[str, str], key: str, value: Any) -> None:
    """Set an option as Spark does: names in any case are one option, the last wins, None says nothing."""
    if value is None:
        return
    for name in [name for name in options if name.lower() == key.lower()]:
        del options[name]
    options[key] = str(value).lower() if isinstance(value, bool) else str(value)
