"""`purge_s3_path` and `purge_table`: files older than a retention period go, with the publish or at once.

enable             listed now, deleted by the publish of the run; what comes later stays
any other run      deleted now

The manifest of a purge, `Success.csv` and `Failed.csv`, is written once the files are gone.
"""

from __future__ import annotations

import csv
import io
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.core.files.file_list import encode_paths
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.rules.territory import PurgeBounds, Territory
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
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.glue.run import GlueRun

log = logging.getLogger(__name__)

_RETENTION_HOURS = 168
_EXCLUDED_CLASSES = ("GLACIER", "DEEP_ARCHIVE")


@dataclass(frozen=True, slots=True)
class PurgeOptions:
    """How a script purges.

    Args:
        retention: files that are younger stay; default 168 hours.
        excluded_classes: storage classes whose objects stay.
        predicate: of a table, the partitions to purge; empty: all.
        manifest: the folder for Success.csv and Failed.csv; None: they are not written.
    """

    retention: timedelta = timedelta(hours=_RETENTION_HOURS)
    excluded_classes: tuple[str, ...] = _EXCLUDED_CLASSES
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
        is_given = "excludeStorageClasses".lower() in {name.lower() for name in options or {}}
        classes = given.names("excludeStorageClasses") if is_given else _EXCLUDED_CLASSES
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
    purge_folders(run, call, [path], PurgeOptions.of(call, options, run), transformation_ctx)


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
    wanted = PurgeOptions.of(call, options, run)
    catalog = catalog_of(run, catalog_id)
    table = catalog.table(database, table_name)
    folders = [table.location] if table.location else []
    if table.partition_columns:
        partitions = list(catalog.partitions(table))
        values = [each.texts for each in partitions]
        admitted = chosen(run.spark, call, table.partition_types, values, wanted.predicate)
        folders = [place for place in (partitions[at].location for at in admitted) if place]
    elif wanted.predicate:
        raise OptionError(
            f"{call}: partitionPredicate={wanted.predicate!r}, and {table.label} has no partitions. Nothing was "
            "deleted or changed."
        )
    elif not folders:
        raise OptionError(f"{call}: {table.label} has no location. Nothing was deleted or changed.")
    purge_folders(run, call, folders, wanted, transformation_ctx)


def purge_folders(run: GlueRun, call: str, paths: Sequence[str], wanted: PurgeOptions, ctx: str = "") -> None:
    """Purge what lies below some folders, such as those of the partitions of a table."""
    # Where a script goes on after a purge that failed, its rows would come beside those that should be gone.
    with run.writing(wanted), reached_by(session_access(run.spark, session_conf(run.spark))):
        purged = [_Purge.of(run, call, path, wanted) for path in paths]
        for each in purged:
            if run.is_managed:
                each.stage(ctx)
            else:
                each.make()


@dataclass(frozen=True, slots=True)
class _Purge:
    """The files of one folder that are to go."""

    run: GlueRun
    call: str
    folder: str
    files: tuple[str, ...]
    manifest: str | None

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
        old = tuple(info.path for info in found if wanted.retention <= timedelta(0) or info.modified_ms < before)
        log.info("%s: %s of %d to purge", call, counted(len(old), "file"), len(found))
        for file in old:
            bounds.check_purge(file)
        return cls(run, call, folder, old, wanted.manifest)

    def stage(self, ctx: str) -> None:
        """Let the publish of the run delete them."""
        job = self.run.job
        if job is None:  # a managed run has one
            raise RuntimeError(f"{self.call}: the run has no job")
        name = self.run.take_output(ctx or f"purge-{self._last}", f"{self.folder}/")
        stage_purge(job, name, self.folder, self.files)
        if self.manifest is not None:
            self.run.at_end(lambda: self._write_manifest_if(was_published=job.summary is not None))

    def make(self) -> None:
        """Delete them now; consumers of the job then see the files that its runs have published as replaced."""
        self._note_replaced()
        changes = FileChanges.of_purge(PurgeBounds(_territory(self.run), self.call, self.folder), self.files)
        gone: set[str] = set()
        try:
            changes.delete(lambda path, _: gone.add(path))
        finally:
            if self.manifest is not None:
                self._write_manifest([f for f in self.files if f in gone], [f for f in self.files if f not in gone])
        log.info("%s: %s purged", self.call, counted(len(gone), "file"))

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

    def _write_manifest_if(self, *, was_published: bool) -> None:
        if was_published:
            self._write_manifest(self.files, ())

    def _write_manifest(self, done: Sequence[str], failed: Sequence[str]) -> None:
        folder = (self.manifest or "").rstrip("/")
        files = open_filesystem(folder)
        for name, paths in (("Success.csv", done), ("Failed.csv", failed)):
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([path] for path in paths)
            files.write(f"{files.canonical(folder)}/{name}", io.BytesIO(text.getvalue().encode()))


def _territory(run: GlueRun) -> Territory:
    job = run.job
    return Territory("-", run.job_name or "-") if job is None else Territory(job.store.namespace, job.name)
