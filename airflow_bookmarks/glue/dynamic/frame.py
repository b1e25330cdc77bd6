"""`DynamicFrame`: the frame as scripts know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.catalogs.lookup import catalog_of, declared_types
from airflow_bookmarks.glue.dynamic.base import FrameBase, check_flag, check_frame
from airflow_bookmarks.glue.dynamic.choice import glue_schema, without_marks
from airflow_bookmarks.glue.dynamic.error_records import ErrorRecords, shown_errors
from airflow_bookmarks.glue.dynamic.fields import resolve, shape
from airflow_bookmarks.glue.dynamic.fields.merge import united
from airflow_bookmarks.glue.transforms.methods import TransformMethods

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.types import StructType


class DynamicFrame(TransformMethods):
    """Rows whose columns may hold values of several types, with the methods of AWS Glue.

    Transforms take `transformation_ctx`, a name for the frame they make; `info`, which errors show; `stageThreshold`
    and `totalThreshold`, how many records may fail in the transform, and in all of them so far, before the frame is
    refused (0, the default: any number).

    Example:
        >>> frame = DynamicFrame.fromDF(dataframe, glue_context, "orders")  # doctest: +SKIP
        >>> frame.resolveChoice(specs=[("price", "cast:double")]).toDF()  # doctest: +SKIP
    """

    @classmethod
    def fromDF(cls, dataframe: DataFrame, glue_ctx: object, name: str = "") -> Self:
        """Return the frame of the rows of a DataFrame.

        Raises:
            TypeError: it is no DataFrame.
        """
        return cls(dataframe, glue_ctx, name)

    def toDF(self, options: Sequence[resolve.ResolveOption] | None = None) -> DataFrame:
        """Return the rows as a DataFrame. A choice is a struct with one field for each of its types.

        Args:
            options: what else to make of choices.
        """
        if self.shows_no_columns:
            return self.spark.createDataFrame([], spark_types.StructType([]))
        frame = self.to_sink()
        return without_marks(resolve.with_options(frame, options or []))

    def with_frame_schema(self, schema: StructType) -> Self:
        """Return the rows with the fields of a schema, cast to its types; values that don't fit are null."""
        return self.derived(shape.as_schema(self.typed(), schema))

    def select_fields(
        self,
        paths: str | Sequence[str],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Keep the fields named, in their order; those that are absent are left out."""
        made = shape.selected(self.df, paths)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def drop_fields(
        self,
        paths: str | Sequence[str],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Leave fields out, also those of structs in arrays: "friends.age"."""
        made = shape.dropped(self.df, paths)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def rename_field(
        self,
        oldName: str,
        newName: str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Rename a field, or move it to another path.

        Raises:
            OptionError: there is such a field already, or the field lies in an array and is to leave it.
        """
        made = shape.renamed(self.df, oldName, newName)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def drop_null_fields(
        self, transformation_ctx: str = "", info: str = "", stageThreshold: int = 0, totalThreshold: int = 0
    ) -> Self:
        """Leave out fields that hold nothing but null in all records: those of type null (`DropNullFields`)."""
        made = shape.without_nulls(self.df)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def resolveChoice(
        self,
        specs: Sequence[tuple[str, str]] | tuple[str, str] | None = None,
        choice: str = "",
        database: str | None = None,
        table_name: str | None = None,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
        catalog_id: str | None = None,
    ) -> Self:
        """Settle choices.

        Args:
            specs: pairs of a path and an action: "cast:<type>" and "project:<type>" cast to a type, and what doesn't
                fit is null; "make_cols" makes a column for each type, "price_int", "price_string"; "make_struct" makes
                a struct of them. `myList[].price` is a field in an array.
            choice: in place of specs, one action for all choices; also "match_catalog", which casts each to the type
                that a table of the catalog gives it.
            database: of that table.
            table_name: of that table.
            transformation_ctx: see the class; so are `info` and the thresholds.
            catalog_id: the account of the catalog, if it is another one.

        Raises:
            OptionError: both or none of specs and choice; an unknown path, action or type.
        """
        pairs = resolve.checked_arguments(specs, choice)
        if pairs is not None:
            casts = all(action.startswith(("cast:", "project:")) for _, action in pairs)
            rows = self.df if casts else self.typed()  # a cast needs no look at the values of declared columns
            made = resolve.settled(rows, pairs, lenient=self.is_nothing_new or not rows.columns)
        elif choice == resolve.MATCH_CATALOG:
            made = resolve.matched(self.typed(), self._catalog_types(database, table_name, catalog_id))
        else:
            made = resolve.settled_everywhere(self.typed(), choice)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def _catalog_types(self, database: str | None, table_name: str | None, catalog_id: str | None) -> StructType:
        if not database or not table_name:
            raise OptionError(
                "resolveChoice: match_catalog needs database and table_name. Nothing was read or changed."
            )
        table = catalog_of(self.run, catalog_id).table(database, table_name)
        return glue_schema(declared_types(self.spark, [*table.columns, *table.partition_columns]))

    def union(
        self,
        other_frame: FrameBase,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Return the rows of this frame and those of another, duplicates kept; columns whose types differ are choices.

        Raises:
            TypeError: the other is no DynamicFrame.
        """
        check_frame(other_frame, "union")
        made = self.derived(
            united(self.typed(), other_frame.typed()),
            transformation_ctx=transformation_ctx,
            info=info,
            stage_threshold=stageThreshold,
            total_threshold=totalThreshold,
            with_errors_of=other_frame,
        )
        made.is_nothing_new = self.is_nothing_new and other_frame.is_nothing_new
        return made

    def repartition(
        self,
        num_partitions: int,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Return the rows in as many partitions, shuffled."""
        made = self.df.repartition(num_partitions)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def coalesce(
        self,
        num_partitions: int,
        shuffle: bool = False,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Return the rows in as many partitions at most; with `shuffle` in as many exactly.

        Raises:
            OptionError: `shuffle` is a text.
        """
        check_flag(shuffle, "shuffle", "coalesce")
        made = self.df.repartition(num_partitions) if shuffle else self.df.coalesce(num_partitions)
        return self._next(made, transformation_ctx, info, stageThreshold, totalThreshold)

    def errorsAsDynamicFrame(self) -> Self:
        """Return a frame with one record for each that could not be read or made: a struct `error`.

        It holds `msg`, `stackTrace`, `callsite` (the name of the transform as `site`, and `info`), `source`, the text
        that could not be read, and `dynamicRecord`, the record that a function got.
        """
        made = self.derived(outcomes=shown_errors(self.errors, self.spark))
        made.name, made.errors = f"{self.name}_errors", ErrorRecords()
        return made

    def _next(self, frame: DataFrame, ctx: str, info: str, stage_threshold: int, total_threshold: int) -> Self:
        return self.derived(
            frame,
            transformation_ctx=ctx,
            info=info,
            stage_threshold=stage_threshold,
            total_threshold=total_threshold,
        )
