"""The interface of a reader: it makes a frame of a plan, for `job.read(ctx).source(source, reader)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

P_contra = TypeVar("P_contra", contravariant=True)


class FrameReader(Protocol[P_contra]):
    """Reads plans of type `P`, on the Spark driver."""

    def frame(self, spark: SparkSession, plan: P_contra, schema: StructType | None) -> DataFrame:
        """Return a frame over exactly what the plan says, whenever Spark reads it; without rows for an empty plan.

        Args:
            schema: the columns that the script has given by `.schema(...)`; for an empty plan, else those of the run
                before; None where neither is known.
        """
        ...
