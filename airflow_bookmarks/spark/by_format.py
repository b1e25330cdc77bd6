"""What the readers have in common: options as Spark takes them, and a method for each format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


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

    def csv(self, path: str | Sequence[str], schema: StructType | str | None = None, **options: Any) -> DataFrame:
        """Read CSV files; see `load`."""
        return self.load(path, "csv", schema, **options)

    def json(self, path: str | Sequence[str], schema: StructType | str | None = None, **options: Any) -> DataFrame:
        """Read JSON files; see `load`."""
        return self.load(path, "json", schema, **options)

    def text(self, path: str | Sequence[str], **options: Any) -> DataFrame:
        """Read text files by line; see `load`."""
        return self.load(path, "text", **options)

    def parquet(self, *paths: str, **options: Any) -> DataFrame:
        """Read Parquet files; see `load`."""
        return self.load(paths, "parquet", **options)

    def orc(self, path: str | Sequence[str], **options: Any) -> DataFrame:
        """Read ORC files; see `load`."""
        return self.load(path, "orc", **options)

    def xml(self, path: str | Sequence[str], schema: StructType | str | None = None, **options: Any) -> DataFrame:
        """Read XML files, one row for each element that `rowTag` names; see `load`."""
        return self.load(path, "xml", schema, **options)


def set_option(options: dict[str, str], key: str, value: Any) -> None:
    """Set an option as Spark does: names in any case are one option, the last wins, None says nothing."""
    if value is None:
        return
    for name in [name for name in options if name.lower() == key.lower()]:
        del options[name]
    options[key] = str(value).lower() if isinstance(value, bool) else str(value)
