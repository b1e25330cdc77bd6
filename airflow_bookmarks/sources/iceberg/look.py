"""The snapshots of a table as pyiceberg tells them: for workers, which have no Spark.

pyiceberg finds a catalog by the name that Spark has for it, in `.pyiceberg.yaml` or in the environment
(PYICEBERG_CATALOG__LAKE__URI). A catalog that it does not know may be one of folders, whose tables say themselves which
snapshot is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from airflow_bookmarks.core.errors import SourceError, SourceMissingError
from airflow_bookmarks.core.text.catalog_name import parts_of
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo

if TYPE_CHECKING:
    from airflow_bookmarks.sources.iceberg.position import IcebergRecipe

_LEFT = "Nothing was read or changed."


def look(recipe: IcebergRecipe) -> SnapshotLog:
    """Return the snapshots of a table as they are now.

    Raises:
        SourceMissingError: there is no such table.
        SourceError: pyiceberg is not installed, or does not reach it.
    """
    try:
        from pyiceberg.exceptions import NoSuchTableError
    except ImportError as error:
        raise SourceError(
            f"the Iceberg table {recipe.name!r} is looked at without Spark by pyiceberg, which is not installed here. "
            f"{_LEFT} Install airflow-provider-bookmarks[iceberg]; a run of the job needs it not."
        ) from error
    try:
        return _log_of(_metadata(recipe))
    except (NoSuchTableError, FileNotFoundError) as error:
        raise SourceMissingError(
            f"the Iceberg table {recipe.name!r} ({recipe.location}) is not there: {in_lines(cause_of(error))}. {_LEFT}"
        ) from error
    except Exception as error:  # of any catalog and any store that pyiceberg reaches, each with errors of its own
        raise SourceError(
            f"pyiceberg does not reach the Iceberg table {recipe.name!r}: {in_lines(cause_of(error))}. {_LEFT} Tell it "
            "the catalog under the name that Spark has for it, in .pyiceberg.yaml or by variables such as "
            "PYICEBERG_CATALOG__LAKE__URI; a run of the job, which looks by Spark, needs it not."
        ) from error


def _metadata(recipe: IcebergRecipe) -> Any:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import StaticTable
    from pyiceberg.utils.config import Config

    catalog, *names = parts_of(recipe.name)
    told = Config().get_catalog_config(catalog)  # as it is now; `load_catalog` by itself knows what was at its import
    if told is None:
        return StaticTable.from_metadata(recipe.location).metadata
    properties = cast("dict[str, str]", told)
    return load_catalog(catalog, **properties).load_table(tuple(names)).metadata


def _log_of(metadata: Any) -> SnapshotLog:
    snapshots = {}
    for each in metadata.snapshots:
        summary = each.summary
        told = {} if summary is None else dict(summary.additional_properties)
        operation = "" if summary is None else str(summary.operation.value)
        snapshots[each.snapshot_id] = TableSnapshotInfo(
            each.snapshot_id, each.parent_snapshot_id, operation, each.timestamp_ms, told
        )
    return SnapshotLog(snapshots, metadata.current_snapshot_id)
