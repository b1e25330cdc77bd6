"""The inputs of a run: outputs must not overlap them, and the operator may have declared them."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.glob import Exclusions, NamePattern
from airflow_bookmarks.core.selection.partition import is_partition
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.real_path import real_path, respelled
from airflow_bookmarks.lifecycle.state.guard import Guarded, guarded
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.scan_filter import Names, ScanRoot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.database.sink_table import SinkTable
    from airflow_bookmarks.lifecycle.state.manifest import Manifests
    from airflow_bookmarks.sinks.staging import Staged
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


_STAGING, _ARCHIVE = "the staging folder", "the archive"


class Inputs(Guarded):
    """The sources and upstreams that one run of `job` reads.

    Args:
        upstreams: the upstream jobs that the operator declared; with none any may be read.
        untils: up to which of their runs, as the operator has it.
        state: where the state of the job lies, by canonical path what that is, to keep outputs from it.
    """

    def __init__(
        self,
        job: str,
        upstreams: Sequence[str],
        untils: Mapping[str, int],
        state: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._job, self._upstreams, self._untils = job, tuple(upstreams), untils
        self._read: set[str] = set()
        self._places: list[tuple[ScanRoot, FileOptions]] = []
        self._published: dict[str, ScanRoot] = {}
        self._targets: dict[str, bool] = {}
        self._tables: dict[str, bool] = {}
        self._written: list[tuple[str, SinkTable]] = []
        self._read_tables: list[tuple[str, SinkTable]] = []
        self._kept: dict[str, str] = dict(state)
        self._columns: dict[str, StructType] = {}

    @property
    def unread_upstreams(self) -> Sequence[str]:
        """The declared upstream jobs that were not read by now."""
        return [job for job in (*self._upstreams, *self._untils) if job not in self._read]

    @guarded
    def note_source(self, places: Sequence[ScanRoot], options: FileOptions) -> None:
        """Remember a source of files that this run reads, to keep its outputs out of it; before it is planned.

        Raises:
            OptionError: an output that was written already lies in it, or is staged in it.
        """
        sources = [(place, options) for place in places]
        for target, overwrites in self._targets.items():
            self._check_sources(sources, target, overwrites=overwrites)
        for folder, what in self._kept.items():
            self._check_unread(sources, folder, what)
        self._places += sources

    @guarded
    def note_links(self, links: Sequence[str], options: FileOptions) -> None:
        """Remember what a source reads elsewhere, by links that were found in it.

        Raises:
            OptionError: an output that was written already lies there.
        """
        folders = [link for link in links if os.path.isdir(link)]
        # Of files that lie in one folder one tells of all: an overwrite of that folder deletes them.
        file_in = {os.path.dirname(real_path(link)): link for link in set(links).difference(folders)}
        self.note_source([ScanRoot(link) for link in (*folders, *file_in.values())], options)

    @guarded
    def note_upstream(self, roots: Sequence[str]) -> None:
        """Remember where an upstream publishes what this run reads, so that no output replaces it.

        An append beside it does no harm: of an upstream those files are read that its runs list.

        Raises:
            OptionError: an output that was written already replaces it.
        """
        published = {root: ScanRoot(root) for root in roots}
        for target, overwrites in self._targets.items():
            self._check_upstreams(published.values(), target, overwrites=overwrites)
        self._published |= published

    @guarded
    def note_columns(self, label: str, columns: StructType) -> None:
        """Remember the columns of a table that is read; `label` is what messages of it begin with."""
        self._columns[label] = columns

    @guarded
    def explain(self, error: BaseException) -> None:
        """Add to an error of Spark what it does not know: of which column a number is, or which frames have deletes."""
        from airflow_bookmarks.spark.contexts.deletes import missing_deletes  # imports pyspark
        from airflow_bookmarks.spark.jdbc.numbers import misfit

        notes = [misfit(error, columns, label) for label, columns in self._columns.items()]
        for said in (*notes, missing_deletes(error)):
            if said is not None:
                error.add_note(said)

    @guarded
    def note_archive(self, archive: str) -> None:
        """Remember where read files are archived, to keep that out of the outputs.

        Raises:
            OptionError: an output that was written already has it where its readers see it.
        """
        for target in self._targets:
            self._check_unseen(target, archive, _ARCHIVE)
        self._kept[archive] = _ARCHIVE

    @guarded
    def check_target(self, target: str, *, overwrites: bool) -> None:
        """Make sure that an output doesn't lie where this run reads, by now or later, and replaces no other output.

        Raises:
            OptionError: the next run would read its own output, or the overwrite would delete the source, or what
                another output of this run publishes.
        """
        self._check_sources(self._places, target, overwrites=overwrites)
        self._check_upstreams(self._published.values(), target, overwrites=overwrites)
        self._check_outputs(target, overwrites=overwrites)
        for folder, what in self._kept.items():
            self._check_unseen(target, folder, what)
        self._targets[target] = overwrites or self._targets.get(target, False)

    @guarded
    def note_table(self, address: str, table: SinkTable) -> None:
        """Remember a table that this run reads by key, to keep its outputs out of it; before it is planned.

        Raises:
            OptionError: an output that was written already goes there.
        """
        for written_to, written in self._written:
            self._check_no_own_input(address, table, written_to, written)
        self._read_tables.append((address, table))

    @guarded
    def check_table(self, address: str, target: SinkTable, *, replaces: bool) -> None:
        """Make sure that an output goes to no table that this run reads, and replaces no other output of it.

        Tables are told by the text of their address: two connections to one database are not seen to be one.

        Args:
            address: the database.
            target: the table.
            replaces: whether the output replaces rows: all of them, or those of its keys.

        Raises:
            OptionError: the next run would read its own output, or the output would replace what the other one
                publishes.
        """
        for read_from, read in self._read_tables:
            self._check_no_own_input(read_from, read, address, target)
        self.check_alone(f"{address}#{target}", replaces=replaces)
        self._written.append((address, target))

    @guarded
    def check_alone(self, table: str, *, replaces: bool) -> None:
        """Make sure that an output which replaces rows of a table is the only one of this run that goes there.

        Raises:
            OptionError: it is not.
        """
        also_replaces = self._tables.get(table)
        if also_replaces is not None and (replaces or also_replaces):
            raise OptionError(
                f"job {self._job!r}: two outputs of one run go to the table {table}, and one of them overwrites, or "
                "replaces rows by their keys: it would replace what the other one publishes, or come too late after "
                "it. Nothing was published or committed. Append with both, or write one union of both frames."
            )
        self._tables[table] = replaces or bool(also_replaces)

    def _check_no_own_input(self, address: str, read: SinkTable, written_to: str, written: SinkTable) -> None:
        schemas = {read.schema, written.schema}
        if address != written_to or read.name != written.name or (len(schemas) > 1 and None not in schemas):
            return
        raise OptionError(
            f"job {self._job!r}: an output goes to the table {written} of {address}, which this run reads: the next "
            "run would read its own output, and an overwrite would delete the source. Nothing was written or "
            "committed. Write to another table."
        )

    def check_staging(self, staging: str) -> None:
        """Make sure that nothing reads what is staged in a folder: no source of this run, no reader of its outputs.

        Raises:
            OptionError: it would be read before it is published.
        """
        self._check_unread(self._places, staging, _STAGING)
        for target in self._targets:
            self._check_unseen(target, staging, _STAGING)
        self._kept[staging] = _STAGING

    def check_published(self, target: str, staged: Staged) -> None:
        """Make sure that no link in a target leads what is published, or deleted, to where this run reads.

        Raises:
            OptionError: one does.
        """
        if not target.startswith("/"):
            return  # object stores and HDFS have no links
        written = {path.rpartition("/")[0] for _, path in staged.moves}
        deleted = {path.rpartition("/")[0] for path in staged.deletes}
        real = real_path(target)
        for folder in sorted(written | deleted):
            if real_path(folder) != f"{real}{folder[len(target) :]}":
                self._check_sources(self._places, folder, overwrites=folder in deleted)
                self._check_upstreams(self._published.values(), folder, overwrites=folder in deleted)

    def _check_sources(self, sources: Iterable[tuple[ScanRoot, FileOptions]], target: str, *, overwrites: bool) -> None:
        for place, options in sources:
            if _reads(place, target, options) or (overwrites and _lies_in(place, target)):
                raise OptionError(
                    f"job {self._job!r}: the target {target!r} and the source {place.root!r} lie within each other"
                    f"{_by_links(target, place.root)}: the job would read, or replace, its own input. Nothing was "
                    "published or committed. Write somewhere else."
                )

    def _check_upstreams(self, published: Iterable[ScanRoot], target: str, *, overwrites: bool) -> None:
        for place in published if overwrites else ():
            if place.reads(respelled(target, place.root), recursive=False) or _lies_in(place, target):
                raise OptionError(
                    f"job {self._job!r}: the target {target!r} is to be overwritten, and an upstream that this run "
                    f"reads publishes to {place.root!r}{_by_links(target, place.root)}: the job would delete the "
                    "output of another job. Nothing was published or committed. Write somewhere else, or append."
                )

    def _check_outputs(self, target: str, *, overwrites: bool) -> None:
        for other, also_overwrites in self._targets.items():
            if not (overwrites or also_overwrites):
                continue
            if ScanRoot(other).holds(respelled(target, other)) or ScanRoot(target).holds(respelled(other, target)):
                raise OptionError(
                    f"job {self._job!r}: two outputs of one run go to {other!r} and {target!r}, which are one folder "
                    f"or lie within each other{_by_links(target, other)}, and one of them overwrites: it would replace "
                    "what the other one publishes. Nothing was published or committed. Append with both, write one "
                    "union of both frames, or give each output a folder of its own."
                )

    def _check_unread(self, sources: Iterable[tuple[ScanRoot, FileOptions]], folder: str, what: str) -> None:
        for place, options in sources if what != _ARCHIVE else ():  # the reader knows where it may lie
            if _sees(place, respelled(folder, place.root), options):
                raise OptionError(
                    f"job {self._job!r}: {what} {folder!r} lies in the source {place.root!r}, which is read with the "
                    "folders below it, and would be read as input. Nothing was written or committed. Choose a folder "
                    "beside the source, or in one whose name begins with an underscore."
                )

    def _check_unseen(self, target: str, folder: str, what: str) -> None:
        if _sees(ScanRoot(target), respelled(folder, target), FileOptions(recursive=True)):
            raise OptionError(
                f"job {self._job!r}: {what} {folder!r} lies in the target {target!r}, where readers see it, and an "
                "overwrite deletes it. Nothing was written or committed. Choose a folder beside the target, or in one "
                "whose name begins with an underscore."
            )

    def check_manifests(
        self, manifests: Manifests | None, ctx: str, places: Sequence[ScanRoot], options: FileOptions
    ) -> None:
        """Make sure that the manifests of this run don't lie where a context reads; before it is planned.

        Raises:
            OptionError: each run would read those of the run before it.
        """
        if manifests is None:
            return
        for place in places:
            if _lists(place, respelled(manifests.path(ctx), place.root), options):
                raise OptionError(
                    f"job {self._job!r}: the manifests below {manifests.folder!r} lie in the source {place.root!r} of "
                    f"context {ctx!r}: each run would read those of the run before it. Nothing was read or changed. "
                    "Let manifest_uri be somewhere else, or in a folder whose name begins with an underscore."
                )

    @guarded
    def until(self, key: str, given: int | None) -> int | None:
        """Return the last upstream run to read: what the script says, else the operator; None: no limit.

        Raises:
            OptionError: both say it, and not the same.
        """
        self._read.add(key)
        wanted = self._untils.get(key)
        if None not in (given, wanted) and given != wanted:
            raise OptionError(
                f"job {self._job!r}: the script reads upstream {key!r} until run {given}, and its operator says "
                f"bookmark_upstream_until of run {wanted}. Nothing was read or changed. Say it in one place."
            )
        return wanted if given is None else given

    @guarded
    def check_upstream(self, job: str, key: str) -> None:
        """Make sure that an upstream that is read was declared by the operator, if it declared any.

        Args:
            job: its name, as the script says it.
            key: that of the job, which is how an operator declares it.

        Raises:
            OptionError: it is not.
        """
        if self._upstreams and not {job, key} & {*self._upstreams}:
            raise OptionError(
                f"job {self._job!r} reads upstream {job!r}, and its operator declares bookmark_upstream="
                f"{list(self._upstreams)}. Nothing was read or changed. Add it there: edges and lineage follow "
                "from it."
            )
        self._read |= {job, key}


def state_folders(store: BookmarkStore) -> dict[str, str]:
    """Return where the state of jobs lies in files, by canonical path what that is."""
    details, uri = store.describe(), store.blobs.state_uri
    kept = {details["path"]: "the store"} if details["kind"] == "sqlite" and details["path"].startswith("/") else {}
    return kept if uri is None else {**kept, open_filesystem(uri).canonical(uri): "state_uri"}


def _reads(place: ScanRoot, target: str, options: FileOptions) -> bool:
    return place.reads(respelled(target, place.root), recursive=options.recursive)


def _lies_in(place: ScanRoot, folder: str) -> bool:
    """Whether a folder holds what is read from a place, in whatever spelling."""
    return place.lies_in(respelled(folder, place.root)) or ScanRoot(respelled(place.root, folder)).lies_in(folder)


def _sees(place: ScanRoot, folder: str, options: FileOptions) -> bool:
    """Whether files in folders below a folder, which has the spelling of the place, may be input of it."""
    if not place.holds(folder):
        return False
    below = place.below(folder)
    if any(map(is_hidden, below.split("/"))):
        return False
    return options.recursive if place.glob is None else not below or place.glob.may_match(below)


def _by_links(path: str, other: str) -> str:
    """Return what explains that two paths are one place, where their names don't."""
    if ScanRoot(path).holds(other) or ScanRoot(other).holds(path) or path[:1] != "/" != other[:1]:
        return ""
    real, real_other = real_path(path), real_path(other)
    return f" (by a link or mount: they are {real!r} and {real_other!r})" if (real, real_other) != (path, other) else ""


def _lists(place: ScanRoot, path: str, options: FileOptions) -> bool:
    """Whether the manifest at a path, or that of another run id beside it, is input of a place."""
    job_folder = path.rsplit("/", 2)[0]
    if place.glob is None and f"{place.root}/".startswith(f"{job_folder}/"):
        return True
    if not place.holds(path):
        return False
    below = place.below(path)
    folders, depth = below.split("/")[:-1], 0 if place.glob is None else place.glob.depth
    if any(map(is_hidden, folders[:-1])) or (place.glob is not None and place.glob.matched(below) is None):
        return False
    names = Names(
        None if options.name_pattern is None else NamePattern.of(options.name_pattern),
        Exclusions.of(options.exclusions) if options.exclusions else None,
    )
    return (options.recursive or all(map(is_partition, folders[depth:]))) and not names.excludes(below)
