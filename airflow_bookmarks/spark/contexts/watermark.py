"""The watermark of a column in Spark: which columns qualify, and how the greatest value is observed and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.order import LOCAL_TIME, NUMBER, TIME, text_of_micros, text_of_number, text_of_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.core.order import Order

_NUMBERS = (ByteType, ShortType, IntegerType, LongType, DecimalType)
_TIMES = (DateType, TimestampNTZType)


@dataclass(frozen=True, slots=True)
class WatermarkColumn:
    """A column whose greatest value is the watermark of a context; NULL is no value."""

    name: str
    type: DataType

    @classmethod
    def of(cls, frame: DataFrame, name: str, label: str) -> WatermarkColumn:
        """Return the column of a frame; `label` names job and context for messages.

        Raises:
            OptionError: there is no such column, or its values can't be compared exactly.
        """
        field = _field(frame, name)
        if field is None:
            raise OptionError(
                f"{label}: watermark_column={name!r} is none of the columns {frame.columns}. Nothing of it was read, "
                "nothing was committed. Name a column of the source (not one inside another)."
            )
        if not isinstance(field.dataType, (TimestampType, *_TIMES, *_NUMBERS)):
            raise OptionError(
                f"{label}: watermark_column={name!r} is a {field.dataType.simpleString()}; a watermark is a timestamp, "
                "a date, an integer or a decimal, which compare exactly. Nothing of it was read, nothing was "
                "committed. Give the column such a type with .schema(...), or name another one."
            )
        return cls(field.name, field.dataType)

    @property
    def order(self) -> Order:
        """How its values compare."""
        if isinstance(self.type, TimestampType):
            return TIME
        return LOCAL_TIME if isinstance(self.type, _TIMES) else NUMBER

    def observed(self) -> Column:
        """Return the greatest value as Spark observes it: as text, because anything else may be rounded on its way."""
        greatest = F.max(F.col(f"`{self.name.replace('`', '``')}`"))
        # As microseconds: the text of a timestamp is that of the session's zone, where an hour comes twice a year.
        return (F.unix_micros(greatest) if isinstance(self.type, TimestampType) else greatest).cast("string")

    def text(self, observed: str | None) -> str | None:
        """Return what was observed as a watermark; None if there was no value, or no watermark can express it."""
        if observed is None:
            return None
        if isinstance(self.type, TimestampType):
            return text_of_micros(int(observed))
        return text_of_time(observed) if isinstance(self.type, _TIMES) else text_of_number(observed)


def _field(frame: DataFrame, name: str) -> StructField | None:
    exact = (frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") or "false").lower() == "true"
    fields = [f for f in frame.schema.fields if f.name == name or (not exact and f.name.lower() == name.lower())]
    return fields[0] if fields else None
