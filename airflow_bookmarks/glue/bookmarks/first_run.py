"""Take over a bookmark of Glue: run 1 of a job here, which stands for all that Glue has read.

Glue knows a time for each context, and no files. So what lies there now is listed, and what counts as read is planned
and committed by a run that reads nothing. Everything else then works as ever: the ledger knows the files, a rewind to
run 1 leads back here, and a reset reads all.

    older than (start of Glue's last run - band)   read
    within the band                                read if its hash is in the list, or as --in-band says
    younger than the start                         new
    in a partition that the catalog got later      new, whatever its time
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from airflow_bookmarks.core.errors import ChangeRefusedError, OptionError
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.rules.start import stands_before_its_first_run
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.files.filesystem import paths_and_patterns
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.glue.names import name_of
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.environment import environment_of
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.glue.bookmarks.entry import GlueEntry, GlueFilesState
    from airflow_bookmarks.glue.catalogs.table import Catalog
    from airflow_bookmarks.sources.files.recorded_plan import RecordedPlan
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

InBand = Literal["read", "again"]

_RUN_ID = "glue/{run_id}"


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What was taken over of one context: how many files count as read, and how many are new to the next run."""

    ctx: str
    read: int
    new: int
    watermark: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"ctx": self.ctx, "read": self.read, "new": self.new, "watermark": self.watermark}


@dataclass(frozen=True, slots=True)
class ContextPlace:
    """What a context reads: paths, or the partitions of a table of the catalog.

    Args:
        paths: as the script names them; of a table its location.
        listed: the partitions of the table; None: what lies below the paths.
        created_ms: by location when the catalog got each partition, in milliseconds since 1970 UTC.
    """

    paths: Sequence[str]
    listed: ListedPartitions | None = None
    created_ms: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_table(cls, catalog: Catalog, name: str) -> ContextPlace:
        """Return the place of a table, `database.table`.

        Raises:
            EntityNotFoundError: there is none. CatalogError: the catalog refuses. OptionError: no such name, or a table
                without a location.
        """
        database, sign, table_name = name.partition(".")
        table = catalog.table(database, table_name) if sign else None
        if table is None or not table.location:
            raise OptionError(f"{name!r} is no table of files: expected DATABASE.TABLE. Nothing was written.")
        if not table.partition_types:
            return cls([table.location])
        placed = [each for each in catalog.partitions(table) if each.location]
        folders = {str(each.location): each.texts for each in placed}
        created_ms = {str(each.location): each.created_ms for each in placed}
        return cls([table.location], ListedPartitions(table.partition_types, folders), created_ms)


def take_over(
    store: BookmarkStore,
    entry: GlueEntry,
    places: Mapping[str, ContextPlace],
    *,
    job: str | None = None,
    in_band: InBand | None = None,
    without: Sequence[str] = (),
) -> list[TakenOver]:
    """Make the bookmark of Glue the starting position of a job that has none here, or whose own was deleted or reset.

    Let the job rest in Glue meanwhile: what its next run there reads is not known here.

    Args:
        entry: what `read_entry` returned.
        places: what each context reads.
        job: the name of the job here; default: that in Glue.
        in_band: what becomes of files of the band: "read" counts them as read, "again" lets them be read again.
            Default: the hashes of the entry decide, where all of them are those of files that are there.
        without: contexts that begin anew, with all there is.

    Raises:
        DocumentError: a context is of another class, or malformed. OptionError: a context without a path, a path of no
            context, or hashes that are no file's. ChangeRefusedError: the job has a position. SourceError: a path
            can't be listed. In each case nothing was written.
    """
    if in_band is not None:
        check_choice("in_band", in_band, InBand)
    states = _states(entry, places, without)
    sources = {ctx: _source(ctx, places[ctx], state, in_band) for ctx, state in states.items()}
    name = _check_free(store, name_of("job", job or entry.job_name))
    for source in sources.values():
        source.look()  # what is refused is refused before the job is taken
    identity = RunIdentity(_RUN_ID.format(run_id=entry.run_id))
    run = ActiveRun.begin(store, name, identity, environment_of(store, identity.attempt))
    try:
        if not stands_before_its_first_run(run_head(store, name)):
            raise _has_runs(name)
        plans = {ctx: run.plan(name_of("context", ctx), source) for ctx, source in sources.items()}
        run.commit()
    except BaseException as error:  # an interrupt too: the job is free for the next try at once
        run.abort(f"the bookmark of Glue was not taken over: {type(error).__name__}: {error}")
        raise
    contexts = store.head(name).contexts
    told = []
    for ctx, plan in plans.items():
        after = contexts.get(name_of("context", ctx))
        new = plan.skipped.get(OVER_BOUND, 0)
        told.append(TakenOver(ctx, len(plan), new, None if after is None else after.watermark))
        log.info("bookmark %s, context %s: %d files count as read, %d are new", name, ctx, len(plan), new)
    return told


def run_head(store: BookmarkStore, job: str) -> Head:
    """Return the head of a job, that of a job without a bookmark where there is none."""
    return store.snapshot(job).head or Head()


def _states(entry: GlueEntry, places: Mapping[str, ContextPlace], without: Sequence[str]) -> dict[str, GlueFilesState]:
    for what, names in (("a place is given", places), ("--without names it", without)):
        unknown = sorted(set(names) - entry.contexts.keys())
        if unknown:
            raise OptionError(
                f"the bookmark of Glue has no context {unknown[0]!r}, and {what}; it has {sorted(entry.contexts)}. "
                "Nothing was written."
            )
    states = {ctx: entry.files_state(ctx) for ctx in sorted(entry.contexts) if ctx not in without}
    missing = [ctx for ctx in states if ctx not in places]
    if missing:
        raise OptionError(
            f"Glue's bookmark does not say what context {missing[0]!r} reads. Nothing was written. Say it as the "
            f"script does (--path {missing[0]}=s3://bucket/folder, or --table {missing[0]}=database.table), or leave "
            f"the context out (--without {missing[0]}): it then begins with all there is."
        )
    if not states:
        raise OptionError("all contexts are left out. Nothing was written: the job begins with all there is anyway.")
    return states


def _check_free(store: BookmarkStore, job: str) -> str:
    head = store.snapshot(job).head
    key = job if head is None else key_of(store, job)
    if not stands_before_its_first_run(run_head(store, key)):
        raise _has_runs(key)
    return key


def _has_runs(job: str) -> ChangeRefusedError:
    return ChangeRefusedError(
        f"job {job!r} has a bookmark here already. Nothing was written. Glue's bookmark is taken over before the first "
        f"run. Look at 'airflow-bookmarks show {job}'. If that bookmark is wrong, such as one that was taken over with "
        f"other paths: 'airflow-bookmarks delete {job} --name {job} --reason ...', with --clean if its runs have "
        "published rows, and take Glue's over again."
    )


# ---- the files


def _source(ctx: str, place: ContextPlace, state: GlueFilesState, in_band: InBand | None) -> GlueReadFiles:
    paths = list(place.paths)
    files = open_one_filesystem(paths)
    roots, globs = paths_and_patterns(files, paths)
    options = FileOptions(recursive=True)  # more than the script reads does no harm: it counts as read
    started_ms = _ms(state.run_started_at)
    later = [files.canonical(folder) for folder, at in place.created_ms.items() if at > started_ms]
    return GlueReadFiles(
        files,
        roots,
        options,
        globs=globs,
        listed=place.listed,
        ctx=ctx,
        state=state,
        in_band=in_band,
        created_later=frozenset(later),
    )


class GlueReadFiles(FileSource):
    """Files of which a plan has those that Glue has read.

    Args:
        ctx: the context, for errors.
        state: what Glue says of it.
        in_band: what becomes of files of the band; None: the hashes decide.
        created_later: folders of partitions that the catalog got after Glue's last run began: it has read none.
    """

    def __init__(
        self,
        *args: Any,
        ctx: str,
        state: GlueFilesState,
        in_band: InBand | None,
        created_later: frozenset[str] = frozenset(),
        **how: Any,
    ) -> None:
        super().__init__(*args, **how)
        self._ctx, self._state, self._in_band = ctx, state, in_band
        self._created_later = created_later

    def look(self) -> None:
        """Plan as if nothing were known, for what is refused.

        Raises:
            OptionError: the hashes are no file's, and `in_band` is None. SourceError: nothing is there.
        """
        self.plan(PlanInput())

    def plan(self, found: PlanInput) -> RecordedPlan:
        """Fix the files that Glue has read; see `Source.plan`."""
        whole = self._planned(found)
        is_read = self._is_read(whole.files) & ~self._is_in_later(whole.files)
        others = np.flatnonzero(~is_read)
        skipped = {**whole.skipped, OVER_BOUND: len(others)} if len(others) else whole.skipped
        files = whole.files.take(np.flatnonzero(is_read))
        return replace(whole, files=files, skipped=skipped, over=(whole.files, others))

    def _is_in_later(self, files: Listing) -> npt.NDArray[np.bool_]:
        if not self._created_later:
            return np.zeros(len(files), np.bool_)
        inside = tuple(f"{folder.rstrip('/')}/" for folder in self._created_later)
        return np.array([path.startswith(inside) for path in files.paths], np.bool_)

    def _is_read(self, files: Listing) -> npt.NDArray[np.bool_]:
        state = self._state
        times = files.times_ms
        is_older = times < _ms(state.read_before)
        is_in_band = ~is_older & (times <= _ms(state.run_started_at))
        if self._in_band is not None:
            return is_older | (is_in_band if self._in_band == "read" else np.zeros_like(is_older))
        return is_older | (is_in_band & self._is_included(files))

    def _is_included(self, files: Listing) -> npt.NDArray[np.bool_]:
        """Return which files have a hash in the list, in the spelling of paths in which all hashes are found."""
        wanted = self._state.included
        if not wanted:
            return np.zeros(len(files), np.bool_)
        for spelled in _SPELLINGS:
            hashes = [_hash(spelled(path)) for path in files.paths]
            if wanted <= set(hashes):
                return np.array([each in wanted for each in hashes], np.bool_)
        raise OptionError(
            f"context {self._ctx!r}: Glue told {len(wanted)} files that it read in the last "
            f"{int(self._state.band.total_seconds())} seconds before {self._state.run_started_at.isoformat()} by "
            f"hashes, and not all of them are hashes of the {len(files)} files that are there. Nothing was written. "
            f"Say what becomes of files of that time: {' or '.join(f'--in-band={each}' for each in get_args(InBand))}."
        )


def _ms(time: Any) -> int:
    return int(time.timestamp() * 1000)


def _hash(path: str) -> int:
    return int(hashlib.md5(path.encode(), usedforsecurity=False).hexdigest(), 16)


def _below_scheme(path: str) -> str:
    return path.partition("://")[2] or path


# Glue does not say what it hashes. These are the ways in which a path is written.
_SPELLINGS = (
    str,
    lambda path: f"s3://{_below_scheme(path)}",
    lambda path: f"s3a://{_below_scheme(path)}",
    _below_scheme,
    lambda path: _below_scheme(path).partition("/")[2],
    lambda path: f"/{_below_scheme(path).partition('/')[2]}",
)
