"""The snapshots of a table as pyiceberg tells them: for workers, which have no Spark.

pyiceberg finds a catalog by the name that Spark has for it, in `.pyiceberg.yaml` or in the environment
(PYICEBERG_CATALOG__LAKE__URI). A catalog that it does not know may be one of folders, whose tables say themselves which
snapshot is theirs.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

from airflow_bookmarks.core.errors import LookRefusedError, SourceError, SourceMissingError
from airflow_bookmarks.core.text.catalog_name import parts_of
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.files.opener import canonical_folder
from airflow_bookmarks.files.permission import present_permission
from airflow_bookmarks.sources.iceberg.partitions import PartAmount
from airflow_bookmarks.sources.iceberg.position import WholeTable
from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
from airflow_bookmarks.sources.iceberg.written import SnapshotFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.iceberg.position import AppendedRows, IcebergRecipe

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

    def parts(self, column: str, piece: WholeTable | AppendedRows) -> Mapping[str | None, PartAmount]:
        """Return what a piece has of each value of a partition column; see `LookAtParts`.

        Raises:
            SourceError: there are files that were written before the table was partitioned by it.
            SourceMissingError, SourceError: see `look`.
        """
        return self._asked(lambda: _parts_of(self._loaded(), column, piece))

    def _loaded(self) -> Any:
        if self._table is None:
            self._table = _table(self._name, self._location)
        return self._table

    def _asked(self, ask: Callable[[], T]) -> T:
        """Return what pyiceberg answers, with its errors in our words.

        A job's table is what a driver wrote, and its metadata names files anywhere, so the API server follows none.
        """
        if present_permission() is not None:
            raise LookRefusedError.of_database(self._name)
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
        except SourceError:
            raise
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


def _parts_of(table: Any, column: str, piece: WholeTable | AppendedRows) -> Mapping[str | None, PartAmount]:
    found: dict[str | None, PartAmount] = {}
    for spec, each in _data_files(table, piece):
        value = _value_of(table, spec, column, each)
        before = found.get(value, PartAmount(0, 0))
        found[value] = PartAmount(before.files + 1, before.rows + each.record_count)
    return found


def _data_files(table: Any, piece: WholeTable | AppendedRows) -> Iterator[tuple[int, Any]]:
    """Yield the data files of a piece, each with the number of its partition spec."""
    from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

    for snapshot, own in _snapshots_of(table, piece):
        for manifest in snapshot.manifests(table.io):
            if own and manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                is_data = entry.data_file.content is DataFileContent.DATA
                if is_data and (not own or entry.status is ManifestEntryStatus.ADDED):
                    yield manifest.partition_spec_id, entry.data_file


def _snapshots_of(table: Any, piece: WholeTable | AppendedRows) -> Iterator[tuple[Any, bool]]:
    """Yield the snapshots whose files a piece has, each with whether only those count that it has added itself."""
    if isinstance(piece, WholeTable):
        yield table.metadata.snapshot_by_id(piece.snapshot), False
        return
    for each in _log_of(table.metadata).line(piece.end):
        if each.id == piece.start:
            return
        if each.is_append:
            yield table.metadata.snapshot_by_id(each.id), True
        if each.parent == piece.start:
            return


def _value_of(table: Any, spec: int, column: str, file: Any) -> str | None:
    """Return the value of a partition column in a file, as Spark casts it to text."""
    for place, field in enumerate(table.metadata.specs()[spec].fields):
        source = table.metadata.schema().find_column_name(field.source_id)
        if source == column and str(field.transform) == "identity":
            return _text_of(file.partition[place], str(table.metadata.schema().find_type(column)))
    raise SourceError(
        f"the Iceberg table has files that were written before it was partitioned by {column}, so Spark alone can tell "
        f"which values have news. {_LEFT}"
    )


def _text_of(value: Any, type: str) -> str | None:
    if value is None:
        return None
    if type == "date" and isinstance(value, int):
        value = date(1970, 1, 1) + timedelta(days=value)
    return str(value).lower() if isinstance(value, bool) else str(value)


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
