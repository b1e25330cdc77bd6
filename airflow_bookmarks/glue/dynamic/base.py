"""What a dynamic frame holds, and how transforms make one frame of another.

    DataFrame form  a DataFrame whose choices and declared types are marked in the metadata of its columns (`choice`)
    record form     an RDD of dicts, or of what became of them (`records`), made a DataFrame when one is asked for

`DynamicFrame` (`frame`) adds the methods that scripts call. Transforms import this module, and never `frame`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.choice import glue_schema, without_marks
from airflow_bookmarks.glue.dynamic.declared import with_declared, with_declared_types
from airflow_bookmarks.glue.dynamic.error_records import ErrorLimits, ErrorRecords, ErrorStage
from airflow_bookmarks.glue.dynamic.records import Outcomes, json_text, records_of
from airflow_bookmarks.glue.dynamic.types import StructType
from airflow_bookmarks.glue.run import current_run

if TYPE_CHECKING:
    from typing import Self

    from pyspark import RDD
    from pyspark.sql import SparkSession
    from pyspark.sql import types as spark_types

    from airflow_bookmarks.glue.dynamic.records import Outcome
    from airflow_bookmarks.glue.run import GlueRun


class FrameBase:
    """Rows whose columns may hold values of several types, without the methods that scripts call.

    Args:
        jdf: the rows, a DataFrame. Glue's own constructor takes an object of its JVM here: that is refused.
        glue_ctx: the `GlueContext` of the script.
        name: a name for messages.

    Raises:
        TypeError: `jdf` is no DataFrame.
    """

    def __init__(self, jdf: DataFrame, glue_ctx: object, name: str = "") -> None:
        if not isinstance(jdf, DataFrame):
            raise TypeError(
                f"DynamicFrame: expected a DataFrame and got {type(jdf).__name__}. Nothing was read or changed. "
                "Objects of Glue's JVM exist in Glue alone: make the frame by DynamicFrame.fromDF(dataframe, glue_ctx)."
            )
        self.glue_ctx, self.name = glue_ctx, name
        self.is_nothing_new = False
        self.errors = ErrorRecords()
        self._rows: DataFrame | Outcomes = without_marks(jdf)
        self._spark: SparkSession = jdf.sparkSession
        self._typed: DataFrame | None = None

    # ---- making one

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        glue_ctx: object,
        name: str,
        *,
        is_nothing_new: bool = False,
        declared: spark_types.StructType | None = None,
        errors: ErrorRecords | None = None,
    ) -> Self:
        """Return the frame of rows that a read of this layer has made.

        Args:
            frame: the rows; marks of choices count.
            glue_ctx: the `GlueContext` of the script.
            name: a name for messages.
            is_nothing_new: whether it is the increment of a context with nothing new. Transforms and sinks keep its
                types; `toDF()` has no columns, unless `spark.bookmarks.glue.empty_columns` is true.
            declared: types that a catalog gives to columns of text, by name in any case. They are applied when a
                mapping, a cast, the schema, `toDF` or a sink asks for them; a column with other values is a choice.
            errors: records that could not be read.
        """
        made = cls(frame, glue_ctx, name)
        made._rows = frame if declared is None else with_declared(frame, declared)
        made.is_nothing_new = is_nothing_new
        made.errors = errors or ErrorRecords()
        return made

    def derived(
        self,
        frame: DataFrame | None = None,
        *,
        transformation_ctx: str = "",
        info: str = "",
        stage_threshold: int = 0,
        total_threshold: int = 0,
        outcomes: RDD[Outcome] | None = None,
        stage: ErrorStage | None = None,
        with_errors_of: FrameBase | None = None,
    ) -> Self:
        """Return the frame that a transform has made of this one; its errors are those of this one and new ones.

        Args:
            frame: the new rows in DataFrame form, with marks.
            transformation_ctx: the name of the new frame; default: that of this one.
            info: what the script wants to read with errors.
            stage_threshold: how many records the transform may fail to make; 0: any number.
            total_threshold: the same, with those of earlier stages.
            outcomes: in place of `frame`, the new rows in record form: dicts, a `RecordFailure` for a record that could
                not be made, and None for a record that the function has dropped.
            stage: beside `frame`, the records that could not be made.
            with_errors_of: another frame that the transform has read.
        """
        made = object.__new__(type(self))
        made.glue_ctx, made.name, made._spark = self.glue_ctx, transformation_ctx or self.name, self._spark
        made.is_nothing_new, made._typed = self.is_nothing_new, None
        if outcomes is not None:
            rows = self._followed_by(outcomes, made.name)
            made._rows = rows
            stage = ErrorStage(made.name, info, rows.count_failures, rows.failures)
        elif frame is not None:
            made._rows = frame
        else:
            made._rows, made._typed = self._rows, self._typed
        earlier = self.errors if with_errors_of is None else self.errors.and_those_of(with_errors_of.errors)
        made.errors = earlier.after(stage, ErrorLimits(int(stage_threshold), int(total_threshold)))
        return made

    def _followed_by(self, outcomes: RDD[Outcome], name: str) -> Outcomes:
        """Return what a function has made of the rows; functions that follow each other run in one pass."""
        before = self._rows
        if isinstance(before, Outcomes):
            return Outcomes(outcomes, self.run, name, before, before.known)
        return Outcomes(outcomes, self.run, name, known=lambda: self.held_schema)

    # ---- what it holds

    @property
    def spark(self) -> SparkSession:
        """The Spark session of its rows."""
        return self._spark

    @property
    def run(self) -> GlueRun:
        """The current run of that session."""
        return current_run(self._spark)

    @property
    def df(self) -> DataFrame:
        """The rows in DataFrame form, with marks; columns of text whose types are declared are text still.

        For transforms that look at no value of such columns, or use `declared.cast_declared`. Others take `typed()`.
        """
        if isinstance(self._rows, Outcomes):
            self._rows = self._rows.dataframe()
        return self._rows

    def typed(self) -> DataFrame:
        """Return the rows in DataFrame form, with marks, where declared types are applied.

        A column with values that don't fit its declared type becomes a choice of that and text: one query finds out,
        the first time that this is asked.
        """
        if self._typed is None:
            self._typed = with_declared_types(self.df)
        return self._typed

    def to_sink(self) -> DataFrame:
        """Return the rows for a sink: typed, choices as marked structs.

        Raises:
            ErrorThresholdError: more records could not be made than the script allows.
        """
        self.errors.check()
        return self.typed()

    def records(self) -> RDD[dict[str, Any]]:
        """Return the rows in record form: structs are dicts, and a choice is the value that it holds."""
        if isinstance(self._rows, Outcomes):
            return self._rows.records()
        return records_of(self.typed())

    @property
    def held_schema(self) -> StructType:
        """The types of its rows, also of an increment with nothing new."""
        return glue_schema(self.typed().schema)

    @property
    def shows_no_columns(self) -> bool:
        """Whether scripts are to see it without columns, as Glue shows an increment with nothing new."""
        return self.is_nothing_new and not self.run.settings.empty_columns

    def column_name(self, name: str) -> str | None:
        """Return the name of a column as the frame spells it; None if it has none of that name in any case."""
        columns = self.df.columns
        if name in columns:
            return name
        return next((column for column in columns if column.lower() == name.lower()), None)

    # ---- what scripts ask of it

    def schema(self) -> StructType:
        """Return the schema; empty for an increment with nothing new, as in Glue."""
        return StructType() if self.shows_no_columns else self.held_schema

    def printSchema(self) -> None:
        """Print the schema as a tree."""
        print(self.schema().treeString())

    def show(self, num_rows: int = 20) -> None:
        """Print rows, each as one JSON object.

        Args:
            num_rows: how many at most; default 20.
        """
        for record in self.records().take(num_rows):
            print(json_text(record))

    def count(self) -> int:
        """Return the number of rows."""
        self.errors.check()
        return self._rows.count()

    def getNumPartitions(self) -> int:
        """Return into how many partitions Spark has divided the rows."""
        rows = self._rows
        return rows.records().getNumPartitions() if isinstance(rows, Outcomes) else rows.rdd.getNumPartitions()

    def errorsCount(self) -> int:
        """Return how many records could not be read or made, in this frame and those before it."""
        return self.errors.count()

    def stageErrorsCount(self) -> int:
        """Return how many records the last read or transform could not make."""
        return self.errors.stage_count()

    def assertErrorThreshold(self) -> None:
        """Hold the number of such records against the thresholds that the script has given.

        Raises:
            ErrorThresholdError: there are more.
        """
        self.errors.check()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


def check_frame(frame: object, call: str) -> None:
    """Make sure that what a script gives is a frame.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(frame, FrameBase):
        what = "a DataFrame: make it one by DynamicFrame.fromDF" if isinstance(frame, DataFrame) else repr(frame)
        raise TypeError(f"{call}: expected a DynamicFrame and got {what}. Nothing was read or changed.")


def check_options(given: object, call: str) -> None:
    """Make sure that what a script gives as `options` is that, and not an argument that stands beside it.

    Raises:
        OptionError: it is neither a dict nor the JSON of one.
    """
    try:
        options = json.loads(given or "{}") if isinstance(given, str) else given or {}
    except ValueError:
        options = given
    if not isinstance(options, Mapping):
        raise OptionError(
            f"{call}: options={given!r} is neither a dict nor the JSON of one. Nothing was read or changed. "
            f"Name the argument that it is for, such as transformation_ctx={given!r}."
        )


def check_flag(given: object, argument: str, call: str) -> None:
    """Make sure that what a script gives as a flag is no text, such as an argument that stands beside it.

    Raises:
        OptionError: it is a text, which would count as true.
    """
    if isinstance(given, str):
        raise OptionError(
            f"{call}: {argument}={given!r} is a text, not True or False. Nothing was read or changed. "
            f"Name the argument that it is for, such as transformation_ctx={given!r}."
        )
