"""`purge_s3_path` and `purge_table`: files older than a retention period go, with the publish or at once.

enable             listed now, deleted by the publish of the run; what comes later stays, also in place of a listed file
any other run      deleted now

The manifest of a purge, `Success.csv` and `Failed.csv`, is written once the files are gone. Partitions whose files are
gone stay in the catalog.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, OptionError, SourceMissingError
from airflow_bookmarks.core.files.file_list import encode_paths
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.rules.territory import PurgeBounds, Territory
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.filesystem import without_classes
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.glue.catalogs.lookup import catalog_of
from airflow_bookmarks.glue.inputs.partitions import chosen
from airflow_bookmarks.glue.names import name_of
from airflow_bookmarks.glue.outputs.options import GivenOptions
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.staging import published_by_runs
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.outputs.purge import stage_purge
from airflow_bookmarks.spark.session import session_access

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.glue.catalogs.table import Catalog, GlueTable
    from airflow_bookmarks.glue.run import GlueRun

log = logging.getLogger(__name__)

_RETENTION_HOURS = 168


@dataclass(frozen=True, slots=True)
class PurgeOptions:
    """How a script purges.

    Args:
        retention: files that are younger stay; default 168 hours.
        excluded_classes: storage classes whose objects stay; default: none, as in Glue.
        predicate: of a table, the partitions to purge; empty: all.
        manifest: the folder for Success.csv and Failed.csv; None: they are not written.
    """

    retention: timedelta = timedelta(hours=_RETENTION_HOURS)
    excluded_classes: tuple[str, ...] = ()
    predicate: str = ""
    manifest: str | None = None

    @classmethod
    def of(cls, call: str, options: Mapping[str, Any] | None, run: GlueRun) -> PurgeOptions:
        """Return what the options of a call say.

        Raises:
            OptionError: one has a value that is none of its own.
        """
        given = GivenOptions(call, options)
        hours = given.number("retentionPeriod", default=_RETENTION_HOURS)
        classes = given.names("excludeStorageClasses")
        predicate = given.text("partitionPredicate", default="") or ""
        manifest = given.text("manifestFilePath") or None
        given.warn_of_rest(run)
        return cls(timedelta(hours=hours or 0), tuple(each.upper() for each in classes), predicate, manifest)


def purge_s3_path(
    run: GlueRun, path: str, options: Mapping[str, Any] | None = None, transformation_ctx: str = ""
) -> None:
    """Purge the files below a path.

    Args:
        run: the current run.
        path: the folder: "s3://lake/orders/day=2013-01-01/".
        options: retentionPeriod (hours, default 168), excludeStorageClasses, manifestFilePath.
        transformation_ctx: the name of the purge among the outputs of the run; default: made from the path.

    Raises:
        OptionError: an option is wrong, or the path is none.
        OutOfBoundsError: the path is a whole bucket or file system.
    """
    call = f"purge_s3_path({path!r})"
    run.check()
    run.note_use()
    with _purging(run, ("purge", str(path).rstrip("/"))):
        _purge(run, call, [path], PurgeOptions.of(call, options, run), transformation_ctx)


def purge_table(
    run: GlueRun,
    catalog_id: str | None,
    database: str,
    table_name: str,
    options: Mapping[str, Any] | None = None,
    transformation_ctx: str = "",
) -> None:
    """Purge the files of a table of the catalog, or of the partitions that `partitionPredicate` admits.

    Args:
        run: the current run.
        catalog_id: the account whose Data Catalog has the table; None: that of the credentials.
        database: the name of its database.
        table_name: its own.
        options: those of `purge_s3_path`, and partitionPredicate: a condition on partition columns, in Spark's SQL.
        transformation_ctx: see `purge_s3_path`.

    Raises:
        EntityNotFoundError: there is no such table. OptionError: it has no folder, or an option is wrong.
    """
    call = f"purge_table({database!r}, {table_name!r})"
    run.check()
    run.note_use()
    with _purging(run, ("purge", str(database), str(table_name), _predicate_in(options))):
        wanted = PurgeOptions.of(call, options, run)
        catalog = catalog_of(run, catalog_id)
        folders = _folders_of(run, call, catalog, catalog.table(database, table_name), wanted.predicate)
        _purge(run, call, folders, wanted, transformation_ctx)


def _predicate_in(options: object) -> str:
    """Return the predicate among options that nobody has checked yet: with another it is a purge of other files."""
    named = options.items() if isinstance(options, Mapping) else ()
    return next((str(value) for name, value in named if str(name).lower() == "partitionpredicate"), "")


def _folders_of(run: GlueRun, call: str, catalog: Catalog, table: GlueTable, predicate: str) -> list[str]:
    """Return the folders of a table, or of its partitions that a predicate admits."""
    if table.partition_columns:
        partitions = list(catalog.partitions(table))
        values = [each.texts for each in partitions]
        admitted = chosen(run.spark, call, table.partition_types, values, predicate)
        return [place for place in (partitions[at].location for at in admitted) if place]
    if predicate:
        raise OptionError(
            f"{call}: partitionPredicate={predicate!r}, and {table.label} has no partitions. Nothing was "
            "deleted or changed."
        )
    if not table.location:
        raise OptionError(f"{call}: {table.label} has no location. Nothing was deleted or changed.")
    return [table.location]


@contextmanager
def _purging(run: GlueRun, place: tuple[str, ...]) -> Iterator[None]:
    """Purge by what the session has of access. A failure keeps the bookmark from being moved.

    Where a script goes on after a purge that failed, its rows would come beside those that should be gone.
    """
    with run.writing(None, frozenset([place])), reached_by(session_access(run.spark, session_conf(run.spark))):
        yield


def _purge(run: GlueRun, call: str, paths: Sequence[str], wanted: PurgeOptions, ctx: str) -> None:
    """Purge what lies below some folders, such as those of the partitions of a table."""
    manifest = None if wanted.manifest is None else _Manifest(run, call, wanted.manifest)
    purged = [_Purge.of(run, call, path, wanted) for path in paths]
    if run.is_managed:
        for each in purged:
            each.stage(ctx)
        if manifest is not None:
            manifest.follows_the_publish(purged)
        return
    gone: set[str] = set()
    try:
        for each in purged:
            each.make(gone)
    finally:
        if manifest is not None:
            files = [file for each in purged for file in each.files]
            manifest.write([f for f in files if f in gone], [f for f in files if f not in gone])


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The lists of the files of a purge that are gone, and of those that are not: `Success.csv` and `Failed.csv`."""

    run: GlueRun
    call: str
    folder: str

    def follows_the_publish(self, purged: Sequence[_Purge]) -> None:
        """Write it when the publish of the run has deleted the files; the run is committed then, and stays so.

        A file that is there by then was replaced since it was listed, and has failed to be purged.
        """
        job, access = self.run.job, session_access(self.run.spark, session_conf(self.run.spark))

        def write() -> None:
            if job is None or job.summary is None:
                return
            try:
                with reached_by(access):
                    there = {path for each in purged for path in each.present()}
                    files = [file for each in purged for file in each.files]
                    self.write([f for f in files if f not in there], [f for f in files if f in there])
            except (OSError, BookmarkError) as error:
                log.warning("%s: the manifest in %s could not be written: %s", self.call, self.folder, cause_of(error))

        self.run.at_end(write)

    def write(self, done: Sequence[str], failed: Sequence[str]) -> None:
        """Write both lists."""
        files = open_filesystem(self.folder)
        folder = files.canonical(self.folder.rstrip("/"))
        for name, paths in (("Success.csv", done), ("Failed.csv", failed)):
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([path] for path in paths)
            files.write(f"{folder}/{name}", io.BytesIO(text.getvalue().encode()))


@dataclass(frozen=True, slots=True)
class _Purge:
    """The files of one folder that are to go."""

    run: GlueRun
    call: str
    folder: str
    listed: tuple[FileInfo, ...]

    @property
    def files(self) -> list[str]:
        """Their paths."""
        return [info.path for info in self.listed]

    @classmethod
    def of(cls, run: GlueRun, call: str, path: str, wanted: PurgeOptions) -> _Purge:
        files = open_filesystem(path)
        folder = files.canonical(path)
        bounds = PurgeBounds(_territory(run), call, folder)
        bounds.check_folder()
        before = int((utc_now() - wanted.retention).timestamp() * 1000)
        try:
            listing = without_classes(files, wanted.excluded_classes).list(folder, recursive=True).files
        except SourceMissingError:
            listing = None
        found = [] if listing is None else [info for info in listing if info.path != folder]
        old = tuple(info for info in found if wanted.retention <= timedelta(0) or info.modified_ms < before)
        log.info("%s: %s of %d to purge", call, counted(len(old), "file"), len(found))
        for info in old:
            bounds.check_purge(info.path)
        return cls(run, call, folder, old)

    def stage(self, ctx: str) -> None:
        """Let the publish of the run delete them."""
        job = self.run.job
        if job is None:  # a managed run has one
            raise RuntimeError(f"{self.call}: the run has no job")
        name = self.run.take_output(ctx or f"purge-{self._last}", f"{self.folder}/")
        stage_purge(job, name, self.folder, self.listed)

    def present(self) -> list[str]:
        """Return the files that are there now."""
        there = open_filesystem(self.folder).stat(self.files)
        return [path for path, info in zip(self.files, there, strict=True) if info is not None]

    def make(self, gone: set[str]) -> None:
        """Delete them now and add them to `gone`; consumers see those that runs of the job published as replaced."""
        self._note_replaced()
        changes = FileChanges.of_purge(PurgeBounds(_territory(self.run), self.call, self.folder), self.files)
        changes.delete(lambda path, _: gone.add(path))
        log.info("%s: %s purged", self.call, counted(len(gone.intersection(self.files)), "file"))

    def _note_replaced(self) -> None:
        job, published = self.run.job, published_by_runs(self.files)
        is_aside = self.run.is_begun and self.run.option is not Option.ENABLE
        if job is None or not published or not is_aside:
            return
        record: dict[str, Any] = {
            "option": self.run.option.value,
            "run_id": job.active_run.execution_id,
            "attempt": 0,
            "contexts": {},
            "outputs": {},
        }
        replaced = {name_of("output", f"purge-{self._last}"): job.store.blobs.payload(encode_paths(published))}
        job.store.put_side(job.name, record, replaced=replaced)

    @property
    def _last(self) -> str:
        return self.folder.rstrip("/").rpartition("/")[2]


def _territory(run: GlueRun) -> Territory:
    job = run.job
    return Territory("-", run.job_name or "-") if job is None else Territory(job.store.namespace, job.name)
