"""The snapshots of a table as pyiceberg tells them: for workers, which have no Spark.

pyiceberg finds a catalog by the name that Spark has for it, in `.pyiceberg.yaml` or in the environment
(PYICEBERG_CATALOG__LAKE__URI). A catalog that it does not know may be one of folders, whose tables say themselves which
snapshot is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from airflow_bookmarks.core.errors import SourceError, SourceMissingError
from airflow_bookmarks.core.text.catalog_name import parts_of
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.files.opener import canonical_folder
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
from airflow_bookmarks.sources.iceberg.written import SnapshotFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.iceberg.position import IcebergRecipe

T = TypeVar("T")

_LEFT = "Nothing was read or changed."


def look(recipe: IcebergRecipe) -> SnapshotLog:
    """Return the snapshots of a table as they are now.

    Raises:
        SourceMissingError: there is no such table.
        SourceError: pyiceberg is not installed, or does not reach it.
    """
    return PyIcebergTable(recipe.name, recipe.location).log()


class PyIcebergTable:
    """A table as pyiceberg tells it; see `LookedAtTable`.

    Args:
        name: its full name, with the catalog.
        location: its folder, by which a table is found whose catalog pyiceberg does not know; "": not known.
    """

    def __init__(self, name: str, location: str = "") -> None:
        self._name, self._location = name, location
        self._table: Any = None

    @classmethod
    def of_output(cls, entry: OutputEntry) -> Self:
        """Return the table that an output went to."""
        return cls(entry.target, entry.metadata.table_folder or "")

    @property
    def location(self) -> str:
        """Its folder."""
        return self._location or canonical_folder(self._asked(lambda: str(self._loaded().metadata.location)))

    def log(self) -> SnapshotLog:
        """Return its snapshots as they are now.

        Raises:
            SourceMissingError, SourceError: see `look`.
        """
        self._table = None
        return self._asked(lambda: _log_of(self._loaded().metadata))

    def files(self, snapshot: int) -> SnapshotFiles:
        """Return what a snapshot, which is kept, has added and removed.

        Raises:
            SourceMissingError, SourceError: see `look`.
        """
        return self._asked(lambda: _files_of(self._loaded(), snapshot))

    def _loaded(self) -> Any:
        if self._table is None:
            self._table = _table(self._name, self._location)
        return self._table

    def _asked(self, ask: Callable[[], T]) -> T:
        """Return what pyiceberg answers, with its errors in our words."""
        try:
            from pyiceberg.exceptions import NoSuchTableError
        except ImportError as error:
            raise SourceError(
                f"the Iceberg table {self._name!r} is looked at without Spark by pyiceberg, which is not installed "
                f"here. {_LEFT} Install airflow-provider-bookmarks[iceberg]; a run of the job needs it not."
            ) from error
        try:
            return ask()
        except (NoSuchTableError, FileNotFoundError) as error:
            raise SourceMissingError(
                f"the Iceberg table {self._name!r} ({self._location}) is not there: {in_lines(cause_of(error))}. "
                f"{_LEFT}"
            ) from error
        except Exception as error:  # of any catalog and any store that pyiceberg reaches, each with errors of its own
            raise SourceError(
                f"pyiceberg does not reach the Iceberg table {self._name!r}: {in_lines(cause_of(error))}. {_LEFT} Tell "
                "it the catalog under the name that Spark has for it, in .pyiceberg.yaml or by variables such as "
                "PYICEBERG_CATALOG__LAKE__URI; a run of the job, which looks by Spark, needs it not."
            ) from error


def _table(name: str, location: str) -> Any:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import StaticTable
    from pyiceberg.utils.config import Config

    catalog, *names = parts_of(name)
    told = Config().get_catalog_config(catalog)  # as it is now; `load_catalog` by itself knows what was at its import
    if told is None:
        return StaticTable.from_metadata(location)
    properties = cast("dict[str, str]", told)
    return load_catalog(catalog, **properties).load_table(tuple(names))


def _files_of(table: Any, snapshot: int) -> SnapshotFiles:
    """Return what the manifests of a snapshot that it has written itself say of data files."""
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

    found: dict[ManifestEntryStatus, list[str]] = {each: [] for each in ManifestEntryStatus}
    for manifest in table.metadata.snapshot_by_id(snapshot).manifests(table.io):
        if manifest.added_snapshot_id != snapshot:
            continue
        for each in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            if each.snapshot_id == snapshot and each.data_file.content is DataFileContent.DATA:
                found[each.status].append(each.data_file.file_path)
    return SnapshotFiles(found[ManifestEntryStatus.ADDED], found[ManifestEntryStatus.DELETED])


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
