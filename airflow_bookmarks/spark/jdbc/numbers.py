"""Say which columns of a database may hold the number at which Spark has stopped, and how to read them.

the database has                  Spark reads it as     a value that does not fit
numeric of PostgreSQL             decimal(38,18)        1e20 and above
numeric, decimal above 38 digits  decimal(38, fewer)    one of more than 38 digits before the point
NaN, infinity of PostgreSQL       decimal(...)          these
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql.types import DecimalType

from airflow_bookmarks.spark.features import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# What Spark 4 says of a number that is too large, and what 3.5 does, which does not tell the type.
_TOO_LARGE = re.compile(r"cannot be represented as Decimal\((\d+), (\d+)\)")
_TOO_LARGE_EARLIER = re.compile(r"DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION|[Dd]ecimal precision \d+ exceeds max")
_MOST_DIGITS = 38  # of a number in Spark: only a column that has as many can meet one that is too large
# What the driver of PostgreSQL says of NaN and infinity.
_NONE = re.compile(r"Bad value for type BigDecimal : (\S+)")


def misfit(error: BaseException, columns: StructType, label: str) -> str | None:
    """Return which columns the value may be in that an error of Spark is about, and what to do; None: it is another.

    Args:
        columns: those of the frame that was read.
        label: what the text begins with.
    """
    if not isinstance(error, SPARK_ERRORS):
        return None
    text = str(error)
    large, none = _TOO_LARGE.search(text), _NONE.search(text)
    if large is None and none is None and _TOO_LARGE_EARLIER.search(text) is None:
        return None
    kinds = {each.name: each.dataType for each in columns if isinstance(each.dataType, DecimalType)}
    if large is not None:
        ends = int(large[1]), int(large[2])
        kinds = {name: kind for name, kind in kinds.items() if (kind.precision, kind.scale) == ends}
    elif none is None:
        kinds = {name: kind for name, kind in kinds.items() if kind.precision == _MOST_DIGITS}
    if not kinds:
        return None
    what = "is too large for" if none is None else f"is {none[1]}, which no number is in"
    said = ", ".join(f"{name} ({kind.simpleString()})" for name, kind in kinds.items())
    example = ", ".join(f"{_quoted(name)} string" for name in kinds)
    return (
        f"{label}: a value of the database {what} the type by which Spark reads its column, one of: {said}. Nothing "
        f"was committed. Read the column as text by properties={{'customSchema': {example!r}}}, or as a type that "
        "holds the value; or cast it, or leave it out, in query=..."
    )


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return name if name.isidentifier() else f"`{escaped}`"
