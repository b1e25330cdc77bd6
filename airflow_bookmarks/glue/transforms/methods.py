"""The transforms as methods of a frame. Each is thin: what it does is in the module that its name says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.glue.dynamic.base import FrameBase, check_flag, check_options
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.transforms.apply_mapping import mapped
from airflow_bookmarks.glue.transforms.join import joined, not_in
from airflow_bookmarks.glue.transforms.nesting import unnested, without_ddb_types
from airflow_bookmarks.glue.transforms.records import check_function, kept_records, mapped_partitions, mapped_records
from airflow_bookmarks.glue.transforms.relational.tables import tables_of
from airflow_bookmarks.glue.transforms.spigot import write_sample
from airflow_bookmarks.glue.transforms.split import divided
from airflow_bookmarks.glue.transforms.unbox import unboxed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.error_records import ErrorStage
    from airflow_bookmarks.glue.dynamic.records import DynamicRecord


class TransformMethods(FrameBase):
    """What scripts call of a frame besides what `DynamicFrame` itself has: it inherits these.

    Arguments that all of them share: `transformation_ctx`, the name of the new frame; `info`, text that error records
    show; `stageThreshold` and `totalThreshold`, at how many more error records of this step, or of all, the frame is
    refused (0, the default: any number).
    """

    # ---- fields

    def apply_mapping(
        self,
        mappings: Sequence[tuple[str, ...]],
        case_sensitive: bool = False,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Choose, rename, nest and cast fields; those that no mapping names are left out.

        Args:
            mappings: tuples of (source path, source type, target path, target type).
            case_sensitive: whether source paths must agree in case; default False.

        Raises:
            TypeError, ValueError: a mapping is no tuple of two to four texts, or two contradict each other.
            OptionError: a path can't be read, no type is called so, or `case_sensitive` is a text.

        Example:
            people.apply_mapping([("name.first", "string", "first_name", "string"), ("age", "string", "age", "int")])
        """
        check_flag(case_sensitive, "case_sensitive", "apply_mapping")
        step = (transformation_ctx, info, stageThreshold, totalThreshold)
        return self._after(mapped(self, mappings, case_sensitive=case_sensitive), *step)

    applyMapping = apply_mapping

    def unnest(
        self, transformation_ctx: str = "", info: str = "", stageThreshold: int = 0, totalThreshold: int = 0
    ) -> Self:
        """Make the fields of structs columns, named by their path; arrays stay."""
        return self._after(unnested(self), transformation_ctx, info, stageThreshold, totalThreshold)

    def unnest_ddb_json(
        self, transformation_ctx: str = "", info: str = "", stageThreshold: int = 0, totalThreshold: int = 0
    ) -> Self:
        """Take the types of DynamoDB out of an export: `Item.name.S` becomes `name`; elements of lists stay."""
        frame = without_ddb_types(self, in_lists=False)
        return self._after(frame, transformation_ctx, info, stageThreshold, totalThreshold)

    def simplify_ddb_json(self) -> Self:
        """Take the types of DynamoDB out of an export, also in lists of one type that is no map."""
        return self._after(without_ddb_types(self, in_lists=True))

    def unbox(
        self,
        path: str,
        format: str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
        **options: Any,
    ) -> Self:
        """Parse a field that holds text; a record whose text can't be read is an error record.

        Args:
            path: the field.
            format: "json" or "csv".
            options: see `unboxed`.
        """
        frame, stage = unboxed(self, path, format, options, transformation_ctx, info)
        return self._after(frame, transformation_ctx, info, stageThreshold, totalThreshold, stage=stage)

    # ---- functions

    def filter(
        self,
        f: Callable[[DynamicRecord], Any],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Keep the records for which a function is true.

        KeyError, ValueError and TypeError count as false, as in Glue; a record with another error is an error record.

        Args:
            f: gets a record, a dict whose fields are attributes, too.
        """
        frame, stage = kept_records(self, f, transformation_ctx, info)
        return self._after(frame, transformation_ctx, info, stageThreshold, totalThreshold, stage=stage)

    def map(
        self,
        f: Callable[[DynamicRecord], Any],
        preservesPartitioning: bool = False,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Make each record anew by a function.

        Args:
            f: gets a record, a dict whose fields are attributes, too; returns a dict, or None to drop the record, which
                is counted. A record with an error is an error record.
            preservesPartitioning: kept for Glue's signature; records stay in their partition in any case.

        Raises:
            OptionError: `preservesPartitioning` is a text.
        """
        check_flag(preservesPartitioning, "preservesPartitioning", "map")
        return self._of_records(mapped_records(self, f), transformation_ctx, info, stageThreshold, totalThreshold)

    def mapPartitions(
        self,
        f: Callable[[Iterable[DynamicRecord]], Iterable[Any]],
        preservesPartitioning: bool = True,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Make the records of each partition anew by a function of all of them.

        Args:
            f: gets the records of a partition and returns dicts. An error in it fails the query.
            preservesPartitioning: as in `map`.

        Raises:
            OptionError: `preservesPartitioning` is a text.
        """
        check_flag(preservesPartitioning, "preservesPartitioning", "mapPartitions")
        check_function(f, "mapPartitions")
        outcomes = mapped_partitions(self, lambda _, records: f(records))
        return self._of_records(outcomes, transformation_ctx, info, stageThreshold, totalThreshold)

    def mapPartitionsWithIndex(
        self,
        f: Callable[[int, Iterable[DynamicRecord]], Iterable[Any]],
        preservesPartitioning: bool = False,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """As `mapPartitions`, with the number of the partition before its records."""
        check_flag(preservesPartitioning, "preservesPartitioning", "mapPartitionsWithIndex")
        check_function(f, "mapPartitionsWithIndex")
        outcomes = mapped_partitions(self, f)
        return self._of_records(outcomes, transformation_ctx, info, stageThreshold, totalThreshold)

    # ---- several frames

    def join(
        self,
        paths1: Sequence[str] | str,
        paths2: Sequence[str] | str,
        frame2: Any,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Join with another frame where keys are equal: the first of `paths1` with the first of `paths2`, and so on.

        All columns stay; one of the other frame whose name this one has gets a dot before it. Null equals nothing.

        Args:
            paths1: keys of this frame.
            paths2: as many keys of the other.
            frame2: the other frame.

        Raises:
            OptionError: no key, more keys on one side, or one that a frame lacks.
        """
        frame = joined(self, frame2, paths1, paths2)
        made = self._after(frame, transformation_ctx, info, stageThreshold, totalThreshold, frame2)
        made.is_nothing_new = self.is_nothing_new or frame2.is_nothing_new
        return made

    def mergeDynamicFrame(
        self,
        stage_dynamic_frame: Any,
        primary_keys: Sequence[str] | str,
        transformation_ctx: str = "",
        options: Mapping[str, Any] | str | None = None,
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Replace the records whose keys a staged frame has by those of that frame, and add the others of it.

        Records with equal keys within a frame all stay. Null equals nothing. The frames may have different columns.

        Args:
            stage_dynamic_frame: the staged records.
            primary_keys: paths of the keys, in both frames.
            options: Glue has no use for them, and neither has this layer.

        Raises:
            OptionError: no key, or one that a frame lacks; or the options are neither a dict nor the JSON of one.
        """
        check_options(options, "mergeDynamicFrame")
        rest = self._after(not_in(self, stage_dynamic_frame, primary_keys))
        merged: Self = rest.union(  # type: ignore[attr-defined]  # of DynamicFrame
            stage_dynamic_frame, transformation_ctx, info, stageThreshold, totalThreshold
        )
        return merged

    # ---- collections

    def relationalize(
        self,
        root_table_name: str,
        staging_path: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrameCollection:
        """Make flat frames of nested records: one of the records, and one of each array, joined by ids.

        Args:
            root_table_name: the name of the frame of the records, with which those of the others begin.
            staging_path: rows are kept in a folder that disappears with the run: below the script's TempDir, else on
                this machine, or here where Spark runs on others.
            options: Glue has no use for them, and neither has this layer.
            transformation_ctx: ids go on from the last committed run of it; without, they begin at 1.

        Raises:
            OptionError: the name is empty, or the options are neither a dict nor the JSON of one.

        Example:
            tables = orders.relationalize("orders", transformation_ctx="tables")
            tables.select("orders_items").toDF()  # id, index, items.val.sku, items.val.price
        """
        check_options(options, "relationalize")
        tables = tables_of(self, root_table_name, transformation_ctx, staging_path)
        step = (info, stageThreshold, totalThreshold)
        frames = {name: self._after(frame, name, *step) for name, frame in tables.items()}
        return DynamicFrameCollection(frames, self.glue_ctx)

    def split_fields(
        self,
        paths: Sequence[str],
        name1: str,
        name2: str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrameCollection:
        """Split the columns over two frames.

        Args:
            paths: the fields of the first frame; the second has all others.
            name1: the name of the first.
            name2: the name of the second.
        """
        step = (info, stageThreshold, totalThreshold)
        frames = {
            name1: self.select_fields(paths, name1, *step),  # type: ignore[attr-defined]  # of DynamicFrame
            name2: self.drop_fields(paths, name2, *step),  # type: ignore[attr-defined]  # of DynamicFrame
        }
        return DynamicFrameCollection(frames, self.glue_ctx)

    def split_rows(
        self,
        comparison_dict: Mapping[str, Mapping[str, Any]],
        name1: str,
        name2: str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrameCollection:
        """Split the records over two frames.

        Args:
            comparison_dict: comparators and values by path, `{"age": {">": 10, "<": 20}}`: the first frame has the
                records for which all of them hold, the second all others.
            name1: the name of the first.
            name2: the name of the second.

        Raises:
            OptionError: an unknown comparator, or a path that the frame lacks.
        """
        step = (info, stageThreshold, totalThreshold)
        frames = dict(zip((name1, name2), divided(self, comparison_dict), strict=True))
        made = {name: self._after(frame, name, *step) for name, frame in frames.items()}
        return DynamicFrameCollection(made, self.glue_ctx)

    # ---- written

    def write(
        self,
        connection_type: str,
        connection_options: Mapping[str, Any] | None = None,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        accumulator_size: int = 0,
    ) -> Any:
        """Write the frame as `write_dynamic_frame.from_options` of its GlueContext does.

        Args:
            connection_type: "s3", "jdbc" and so on.
            connection_options: where to.
            format: of files.
            format_options: of the format.
            accumulator_size: Glue has a use for it, and this layer has none.
        """
        context: Any = self.glue_ctx  # a class that is made of what is here
        return context.write_dynamic_frame_from_options(
            self, connection_type, connection_options, format, format_options
        )

    def spigot(
        self,
        path: str,
        options: Mapping[str, Any] | str | None = None,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> Self:
        """Write a sample as JSON into a folder, at once, and return the frame.

        Args:
            path: the folder.
            options: `topk`, how many records; `prob`, the probability of each; default: all records.

        Raises:
            OptionError: an unknown option.
        """
        write_sample(self, path, options or {})
        return self._after(None, transformation_ctx, info, stageThreshold, totalThreshold)

    # ---- how one frame follows from another

    def _after(
        self,
        frame: DataFrame | None,
        transformation_ctx: str = "",
        info: str = "",
        stage_threshold: int = 0,
        total_threshold: int = 0,
        other: FrameBase | None = None,
        stage: ErrorStage | None = None,
    ) -> Self:
        return self.derived(
            frame,
            stage=stage,
            transformation_ctx=transformation_ctx,
            info=info,
            stage_threshold=stage_threshold,
            total_threshold=total_threshold,
            with_errors_of=other,
        )

    def _of_records(self, outcomes: Any, ctx: str, info: str, stage_threshold: int, total_threshold: int) -> Self:
        return self.derived(
            outcomes=outcomes,
            transformation_ctx=ctx,
            info=info,
            stage_threshold=stage_threshold,
            total_threshold=total_threshold,
        )
