"""The classes of `awsglue.transforms`: each calls the method of the frame that does the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.glue.dynamic.base import check_frame
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.transforms.transform import GlueTransform

if TYPE_CHECKING:
    from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
    from airflow_bookmarks.glue.dynamic.records import DynamicRecord

# What a script hands on as `**kwargs` in MapToCollection and FlatMap is named by it, so all names are Glue's.


class ApplyMapping(GlueTransform):
    """Choose, rename, nest and cast fields."""

    def __call__(
        self,
        frame: DynamicFrame,
        mappings: Sequence[tuple[str, ...]],
        case_sensitive: bool = False,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.apply_mapping`."""
        return checked(frame, self).apply_mapping(
            mappings, case_sensitive, transformation_ctx, info, stageThreshold, totalThreshold
        )


class SelectFields(GlueTransform):
    """Keep the fields named, and leave all others out."""

    def __call__(
        self,
        frame: DynamicFrame,
        paths: Sequence[str],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.select_fields`."""
        return checked(frame, self).select_fields(paths, transformation_ctx, info, stageThreshold, totalThreshold)


class DropNullFields(GlueTransform):
    """Leave out fields that hold nothing but null in all records."""

    def __call__(
        self,
        frame: DynamicFrame,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.drop_null_fields`."""
        return checked(frame, self).drop_null_fields(transformation_ctx, info, stageThreshold, totalThreshold)


class DropFields(GlueTransform):
    """Leave fields out, also nested ones and those of structs in arrays."""

    def __call__(
        self,
        frame: DynamicFrame,
        paths: Sequence[str],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.drop_fields`."""
        return checked(frame, self).drop_fields(paths, transformation_ctx, info, stageThreshold, totalThreshold)


class RenameField(GlueTransform):
    """Rename a field, or move it to another path."""

    def __call__(
        self,
        frame: DynamicFrame,
        old_name: str,
        new_name: str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.rename_field`."""
        return checked(frame, self).rename_field(
            old_name, new_name, transformation_ctx, info, stageThreshold, totalThreshold
        )


class ResolveChoice(GlueTransform):
    """Settle fields that hold values of several types."""

    def __call__(
        self,
        frame: DynamicFrame,
        specs: Sequence[tuple[str, str]] | None = None,
        choice: str = "",
        database: str | None = None,
        table_name: str | None = None,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
        catalog_id: str | None = None,
    ) -> DynamicFrame:
        """See `DynamicFrame.resolveChoice`."""
        return checked(frame, self).resolveChoice(
            specs,
            choice,
            database,
            table_name,
            transformation_ctx,
            info,
            stageThreshold,
            totalThreshold,
            catalog_id,
        )


class Map(GlueTransform):
    """Make each record anew by a function."""

    def __call__(
        self,
        frame: DynamicFrame,
        f: Callable[[DynamicRecord], Any],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
        preservesPartitioning: bool = False,
    ) -> DynamicFrame:
        """See `DynamicFrame.map`."""
        return checked(frame, self).map(
            f, preservesPartitioning, transformation_ctx, info, stageThreshold, totalThreshold
        )


class Filter(GlueTransform):
    """Keep the records for which a function is true."""

    def __call__(
        self,
        frame: DynamicFrame,
        f: Callable[[DynamicRecord], Any],
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.filter`."""
        return checked(frame, self).filter(f, transformation_ctx, info, stageThreshold, totalThreshold)


class Join(GlueTransform):
    """Join two frames where keys are equal."""

    def __call__(
        self,
        frame1: DynamicFrame,
        frame2: DynamicFrame,
        keys1: Sequence[str] | str,
        keys2: Sequence[str] | str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.join`."""
        return checked(frame1, self).join(
            keys1, keys2, checked(frame2, self), transformation_ctx, info, stageThreshold, totalThreshold
        )


class Union(GlueTransform):
    """Put the records of two frames together."""

    def __call__(
        self,
        frame1: DynamicFrame,
        frame2: DynamicFrame,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.union`."""
        return checked(frame1, self).union(
            checked(frame2, self), transformation_ctx, info, stageThreshold, totalThreshold
        )


class Relationalize(GlueTransform):
    """Make flat tables of nested records: one of all records, and one of each array."""

    def __call__(
        self,
        frame: DynamicFrame,
        staging_path: str | None = None,
        name: str = "roottable",
        options: dict[str, Any] | str | None = None,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrameCollection:
        """See `DynamicFrame.relationalize`."""
        return checked(frame, self).relationalize(
            name, staging_path, options or {}, transformation_ctx, info, stageThreshold, totalThreshold
        )


class UnnestFrame(GlueTransform):
    """Make the fields of structs columns, named by their path."""

    def __call__(
        self,
        frame: DynamicFrame,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.unnest`."""
        return checked(frame, self).unnest(transformation_ctx, info, stageThreshold, totalThreshold)


class Unbox(GlueTransform):
    """Parse a field that holds text of a format, such as JSON."""

    def __call__(
        self,
        frame: DynamicFrame,
        path: str,
        format: str,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
        **options: Any,
    ) -> DynamicFrame:
        """See `DynamicFrame.unbox`."""
        return checked(frame, self).unbox(
            path, format, transformation_ctx, info, stageThreshold, totalThreshold, **options
        )


class SplitFields(GlueTransform):
    """Split the columns of a frame over two frames."""

    def __call__(
        self,
        frame: DynamicFrame,
        paths: Sequence[str],
        name1: str = "frame1",
        name2: str = "frame2",
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrameCollection:
        """See `DynamicFrame.split_fields`."""
        return checked(frame, self).split_fields(
            paths, name1, name2, transformation_ctx, info, stageThreshold, totalThreshold
        )


class SplitRows(GlueTransform):
    """Split the records of a frame over two frames."""

    def __call__(
        self,
        frame: DynamicFrame,
        comparison_dict: dict[str, dict[str, Any]],
        name1: str = "frame1",
        name2: str = "frame2",
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrameCollection:
        """See `DynamicFrame.split_rows`."""
        return checked(frame, self).split_rows(
            comparison_dict, name1, name2, transformation_ctx, info, stageThreshold, totalThreshold
        )


class Spigot(GlueTransform):
    """Write a sample of the records as JSON, and hand the frame on."""

    def __call__(
        self,
        frame: DynamicFrame,
        path: str,
        options: dict[str, Any] | str | None = None,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.spigot`."""
        return checked(frame, self).spigot(
            path, options or {}, transformation_ctx, info, stageThreshold, totalThreshold
        )


class Repartition(GlueTransform):
    """Spread the records over a number of partitions."""

    def __call__(
        self,
        frame: DynamicFrame,
        num_partitions: int,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.repartition`."""
        return checked(frame, self).repartition(
            num_partitions, transformation_ctx, info, stageThreshold, totalThreshold
        )


class Coalesce(GlueTransform):
    """Bring the records together in fewer partitions."""

    def __call__(
        self,
        frame: DynamicFrame,
        num_partitions: int,
        shuffle: bool = False,
        transformation_ctx: str = "",
        info: str = "",
        stageThreshold: int = 0,
        totalThreshold: int = 0,
    ) -> DynamicFrame:
        """See `DynamicFrame.coalesce`."""
        return checked(frame, self).coalesce(
            num_partitions, shuffle, transformation_ctx, info, stageThreshold, totalThreshold
        )


class ErrorsAsDynamicFrame(GlueTransform):
    """Return the error records of a frame as a frame."""

    def __call__(self, frame: DynamicFrame) -> DynamicFrame:
        """See `DynamicFrame.errorsAsDynamicFrame`."""
        return checked(frame, self).errorsAsDynamicFrame()


class SelectFromCollection(GlueTransform):
    """Return one frame of a collection."""

    def __call__(self, dfc: DynamicFrameCollection, key: str, transformation_ctx: str = "") -> DynamicFrame:
        """See `DynamicFrameCollection.select`."""
        found: DynamicFrame = checked_collection(dfc, self).select(key)
        return found


class MapToCollection(GlueTransform):
    """Apply a function to each frame of a collection."""

    def __call__(
        self,
        dfc: DynamicFrameCollection,
        callable: Callable[..., DynamicFrame],
        transformation_ctx: str = "",
    ) -> DynamicFrameCollection:
        """See `DynamicFrameCollection.map`."""
        return checked_collection(dfc, self).map(callable, transformation_ctx)


class FlatMap(GlueTransform):
    """Apply a transform to each frame of a collection; its frames, or those of its collections, make a new one."""

    def __call__(
        self,
        dfc: DynamicFrameCollection,
        BaseTransform: type[GlueTransform],
        frame_name: str,
        transformation_ctx: str = "",
        **base_kwargs: Any,
    ) -> DynamicFrameCollection:
        """Apply `BaseTransform` with each frame as the argument `frame_name`.

        Example:
            FlatMap.apply(split, ResolveChoice, frame_name="frame", choice="cast:string")
        """

        def applied(frame: DynamicFrame, ctx: str = "") -> Any:
            return BaseTransform.apply(**{**base_kwargs, frame_name: frame, "transformation_ctx": ctx})

        return checked_collection(dfc, self).flatmap(applied, transformation_ctx)


def checked(frame: DynamicFrame, transform: GlueTransform) -> DynamicFrame:
    """Return what is a DynamicFrame.

    Raises:
        TypeError: it is something else, such as the DataFrame that `toDF` gave.
    """
    check_frame(frame, transform.name())
    return frame


def checked_collection(frames: object, transform: GlueTransform) -> DynamicFrameCollection:
    """Return what is a DynamicFrameCollection.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(frames, DynamicFrameCollection):
        return frames
    raise TypeError(
        f"{transform.name()} takes a DynamicFrameCollection and got {type(frames).__name__}. "
        "Nothing was read or changed."
    )
