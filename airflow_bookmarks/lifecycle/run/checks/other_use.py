"""Find which other jobs and contexts have yet to read the files that a run is to delete or archive.

Another context of the same run is refused when it is planned. Other jobs of the namespace, and contexts of this job
that the run does not read, are checked before files go: files that the ledger of such a context lacks stay, until a
later run of this job finds them in it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.run import names_now
from airflow_bookmarks.core.selection.glob import Exclusions, NamePattern
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition import is_partition, placed, roots_above
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.real_path import RealRoots, real_path, real_paths
from airflow_bookmarks.lifecycle.protocol.source_cleanup import log_kept, put_away
from airflow_bookmarks.lifecycle.state.positions import ContextReader, entry_now
from airflow_bookmarks.lifecycle.state.verification import plan_of_files
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.scan import ScanSpec
from airflow_bookmarks.sources.files.scan_filter import Names, ScanRoot
from airflow_bookmarks.sources.registry import has_ledger, kind_of, upstream_of
from airflow_bookmarks.sources.relocation import moved_path
from airflow_bookmarks.store.transitions.naming import job_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import ContextState, PlanEntry
    from airflow_bookmarks.lifecycle.run.use.inputs import RunInputs
    from airflow_bookmarks.sources.source import Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

_WILD = re.compile(r"[*?\[{\\]")
_SHARD = re.compile(r"~\d\d\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Region:
    """What a source of files reads: some places, by their real paths, and a filter on the files there.

    `given` are the same places as the source spells them, and so its ledger.
    """

    places: Sequence[ScanRoot]
    options: FileOptions
    given: Sequence[str] = ()

    @classmethod
    def of(cls, source: Source[Any]) -> Region | None:
        """Return the region of a source; None if its source is not files."""
        return cls._at(source.places, source.options, source.listed) if isinstance(source, FileSource) else None

    @classmethod
    def _at(cls, places: Sequence[ScanRoot], options: FileOptions, listed: ListedPartitions | None = None) -> Region:
        # Partitions that a catalog lists may have folders of any name, and it may list more of them tomorrow.
        options = options if listed is None else replace(options, recursive=True)
        return cls(_real(places), options, tuple(place.root for place in places))

    @classmethod
    def of_plan(cls, plan: FilePlan, entry: PlanEntry) -> Region:
        """Return the region of a stored plan, as its roots lie now; everything below these if it tells no more."""
        metadata = entry.file_metadata
        read = metadata.read

        def now(paths: Sequence[str]) -> tuple[str, ...]:
            return tuple(moved_path(path, metadata.moves) for path in paths)

        if read is None:
            return cls._at([ScanRoot(root) for root in now(plan.roots)], FileOptions(recursive=True))
        options, listed = FileOptions.of_stats(read.options), plan.listed_partitions
        roots, globs = now(plan.roots if read.roots is None else read.roots), now(read.globs)
        elsewhere = () if listed is None else now(list(listed.folders))
        return cls._at(ScanSpec((*roots, *elsewhere), globs, options, {}).places(), options, listed)

    def may_meet(self, other: Region) -> bool:
        """Whether a file may be part of both: also where a bound, a filter or a pattern keeps them apart today."""
        return self._may_hold(other) or other._may_hold(self)

    def _may_hold(self, other: Region) -> bool:
        """Whether a place of another region, which lies in one of this, may share a file with it."""
        by_root = self._by_root()
        place_of = placed(list(by_root))
        return any(
            _meet(place, there, self)
            for there in other.places
            for root in roots_above(there.root, place_of)
            for place in by_root[root]
        )

    def _by_root(self) -> Mapping[str, Sequence[ScanRoot]]:
        by_root: dict[str, list[ScanRoot]] = {}
        for place in self.places:
            by_root.setdefault(place.root, []).append(place)
        return by_root

    def covers(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Return which files are part of it."""
        names = Names(
            None if self.options.name_pattern is None else NamePattern.of(self.options.name_pattern),
            Exclusions.of(self.options.exclusions) if self.options.exclusions else None,
        )
        by_root = self._by_root()
        place_of = placed(list(by_root))
        covered = [
            any(self._covers(place, path, names) for root in roots_above(path, place_of) for place in by_root[root])
            for path in real_paths(listing.paths)
        ]
        return np.array(covered, np.bool_)

    def respelled(self, listing: Listing) -> Iterator[Listing]:
        """Yield files as the source would spell them that reaches their folders by links."""
        # A root may be a file: then its folder tells.
        roots = dict.fromkeys(each for root in self.given for each in (root, root.rpartition("/")[0] or "/"))
        known, folders = RealRoots(list(roots)), listing.in_folders()
        spellings = [known.spellings(folder) for folder in folders.names]
        for root in roots:
            names = [spelled.get(root, folder) for spelled, folder in zip(spellings, folders.names, strict=True)]
            if names != list(folders.names):
                files = zip(folders.numbers.tolist(), listing.paths, strict=True)
                paths = [f"{names[number].rstrip('/')}/{path.rpartition('/')[2]}" for number, path in files]
                yield Listing(paths, listing.sizes, listing.times_ms, listing.etags)

    def _covers(self, place: ScanRoot, path: str, names: Names) -> bool:
        below = place.below(path)
        folders, depth = below.split("/")[:-1], 0 if place.glob is None else place.glob.depth
        if any(map(is_hidden, folders)) or (place.glob is not None and place.glob.matched(below) is None):
            return False
        return (self.options.recursive or all(map(is_partition, folders[depth:]))) and not names.excludes(below or path)


def _real(places: Sequence[ScanRoot]) -> Sequence[ScanRoot]:
    """Return places by their real paths: another source may reach the same folder by a link."""
    return [replace(place, root=real_path(place.root)) for place in places]


def _meet(place: ScanRoot, other: ScanRoot, region: Region) -> bool:
    """Whether a place of a region may share a file with another place, whose root lies in its own."""
    if place.pattern is not None and other.pattern is not None:
        a, b = (_WILD.split(each.pattern or "", maxsplit=1)[0] for each in (place, other))
        return a.startswith(b) or b.startswith(a)
    recursive = region.options.recursive
    above, _, name = other.root.rpartition("/")
    return place.reads(other.root, recursive=recursive) or (
        "." in name and place.reads(above or "/", recursive=recursive)  # it may be a file
    )


def check_alone(
    job: str, ctx: str, source: Source[Any], others: Mapping[str, Source[Any]], disposing: Mapping[str, str]
) -> None:
    """Make sure that no context of a run reads what another one of it is to delete or archive.

    Args:
        others: the sources of the contexts that were planned before.
        disposing: by context, what its `on_published` says, of those that put files away.

    Raises:
        OptionError: two of them do.
    """
    region = Region.of(source)
    for other, theirs in others.items():
        verb = disposing.get(ctx) or disposing.get(other)
        there = Region.of(theirs)
        if verb is None or region is None or there is None or not region.may_meet(there):
            continue
        who, whose = (ctx, other) if ctx in disposing else (other, ctx)
        raise OptionError(
            f"job {job!r}: contexts {who!r} and {whose!r} read the same files ({source.ref()}), and "
            f"on_published={verb!r} of {who!r} would take them from {whose!r}, which may not have read all of them. "
            f"Nothing of {ctx!r} was read, and no file was touched. Read them once and use the frame twice; or keep "
            "the files, and put them away when both have read them."
        )


# ---- other jobs


@dataclass(frozen=True, slots=True)
class OtherReader:
    """A context of a job that reads files of a region, and the files of it that it knows; None: it has no position.

    `is_done`: it reads what a job has published there, and has consumed all of it.
    """

    job: str
    ctx: str
    region: Region
    ledger: Ledger | None
    is_done: bool = False

    @property
    def name(self) -> str:
        """The name that a shard and its siblings share: each file is read by one of them."""
        return f"{_SHARD.sub('', self.job)}, context {self.ctx}"

    def has_not_read(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Return the files that it has yet to read, in these versions."""
        if self.is_done:
            return np.zeros(len(listing), np.bool_)
        unread = self.region.covers(listing)
        if self.ledger is not None:
            for spelled in (listing, *self.region.respelled(listing)):
                unread &= self.ledger.classify(spelled) != Known.KNOWN
        return unread


def other_readers(store: BookmarkStore, job: str, contexts: Sequence[str], region: Region) -> list[OtherReader]:
    """Return the readers of files of a region, besides `contexts` of `job`; reads the heads of the whole namespace.

    Raises:
        StoreAccessError: this identity may not look at all jobs. StateCorruptError: one of them can't be read.
    """
    heads = store.heads(list(job_keys(store)))
    found = list(_consumers(store, heads, region))
    for name, head in heads.items():
        for ctx, entry in _plans(store, name, head, region):
            if name == job and ctx in contexts:
                continue
            plan: FilePlan | None = None if entry is None else kind_of(entry.kind).decode(store.blobs.get(entry.body))
            theirs = region if plan is None or entry is None else Region.of_plan(plan, entry)
            if theirs.may_meet(region):
                position = ContextReader(store, name, head).found(ctx) if ctx in head.contexts else None
                at = None if position is None or position.position is None else position
                ledger = None if at is None else Ledger.from_root(at.position or b"", at.load)
                found.append(OtherReader(name, ctx, theirs, ledger))
    return found


def _consumers(store: BookmarkStore, heads: Mapping[str, Head], region: Region) -> Iterator[OtherReader]:
    """Yield the contexts that read what a job has published into the region."""
    for name, head in heads.items():
        for ctx, state in head.contexts.items():
            read = upstream_of(state)
            upstream = None if read is None else heads.get(read)
            if read is None or upstream is None:
                continue
            body = ContextReader(store, name, head).found(ctx).position
            at = None if body is None else kind_of(state.kind).consumed(body)
            is_seen = at is not None and (at.epoch, at.changes) == (upstream.epoch, upstream.changes)
            after = at.run_number if at is not None and is_seen else 0
            is_done = after >= upstream.published
            published = _published(store, read, min(after, upstream.data_run_number - 1), upstream)
            if published.may_meet(region):
                yield OtherReader(name, ctx, published, None, is_done)


def _published(store: BookmarkStore, job: str, after: int, head: Head) -> Region:
    """Return where runs of a job after `after` published: outputs and places differ from run to run."""
    runs = store.runs(job, after=after, until=head.published)
    targets = {entry.target for run in runs for entry in run.outputs.values() if entry.publish is not None}
    return Region(_real([ScanRoot(target) for target in sorted(targets)]), FileOptions(recursive=True))


def _plans(store: BookmarkStore, job: str, head: Head, region: Region) -> Iterator[tuple[str, PlanEntry | None]]:
    """Yield the plans that tell what contexts of files read, where that lies now (None: it may be all of the region).

    Of a job that was reset these are the plans of its last run.
    """
    states = {ctx: s for ctx, s in head.contexts.items() if has_ledger(s.kind) and _may_name(s, region)}
    runs = store.run_items(job, list({state.run for state in states.values()})) if states else {}
    for ctx, state in states.items():
        run = runs.get(state.run)
        entry = None if run is None else run.plans.get(state.planned_as(ctx))
        yield ctx, None if entry is None else entry_now(entry, state)
    last = store.committed_run(job, head.run_number) if head.epoch > 1 and head.run_number else None
    present = head.contexts.keys() | names_now(head.contexts).keys()
    plans = {} if last is None else {ctx: e for ctx, e in last.plans.items() if ctx not in present}
    line_change = store.line_change(job, head.epoch) if plans else None
    for ctx, entry in plans.items():
        if has_ledger(entry.kind):
            yield ctx, entry_now(entry, None if line_change is None else line_change.contexts.get(ctx))


def _may_name(state: ContextState, region: Region) -> bool:
    """Whether the source of a context may have files in a region, as far as its name says which root it has."""
    roots = kind_of(state.kind).roots_of(state.source)
    if roots is None:
        return True
    theirs = [_WILD.split(root, maxsplit=1) for root in roots]
    folders = [real_path(first if not rest else first.rpartition("/")[0] or "/") for first, *rest in theirs]
    ours = [place.root for place in region.places]
    place_of, place_of_theirs = placed(ours), placed(folders)
    return any(roots_above(root, place_of) for root in folders) or any(
        roots_above(root, place_of_theirs) for root in ours
    )


@dataclass(frozen=True, slots=True)
class OtherUse:
    """The other readers of the files of a source that `contexts` of `job` have read."""

    store: BookmarkStore
    job: str
    contexts: Sequence[str]
    source: Source[Any]

    def still_wanted(self, listing: Listing) -> tuple[npt.NDArray[np.bool_], Sequence[str]]:
        """Return the files that other readers have not read yet, and who these are.

        Raises:
            StoreError: it can't be found out.
        """
        region, wanted = Region.of(self.source), np.zeros(len(listing), np.bool_)
        readers = [] if region is None else other_readers(self.store, self.job, self.contexts, region)
        unread = unread_elsewhere(readers, listing)
        for waiting in unread.values():
            wanted |= waiting
        return wanted, sorted(unread)


def put_away_read(store: BookmarkStore, grant: LeaseGrant, inputs: RunInputs, plans: Mapping[str, Plan]) -> None:
    """Delete or archive what a published run has read (`plans`, of its commit), except what others have yet to read."""
    for ctx, disposal in inputs.disposals.items():
        if ctx not in plans:
            continue
        plan = plan_of_files(grant.job, ctx, plans[ctx], "on_published")
        if ctx in inputs.kept:
            log_kept(grant.job, ctx, disposal, len(plan), inputs.kept[ctx])
        else:
            others = OtherUse(store, grant.job, list(plans), inputs[ctx].source)
            put_away(store, grant, ctx, inputs[ctx].plan, plan, disposal, others.still_wanted)


def unread_elsewhere(readers: Sequence[OtherReader], listing: Listing) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the files that each reader has yet to read, without readers that have read all. Shards are one reader."""
    unread: dict[str, npt.NDArray[np.bool_]] = {}
    for reader in readers:
        waiting = reader.has_not_read(listing)
        unread[reader.name] = unread[reader.name] & waiting if reader.name in unread else waiting
    return {name: waiting for name, waiting in unread.items() if waiting.any()}


def warn_of_readers(store: BookmarkStore, job: str, ctx: str, source: Source[Any]) -> None:
    """Warn, in the first run of a job, of others that read the files which it is to put away."""
    region = Region.of(source)
    try:
        readers = [] if region is None else other_readers(store, job, [ctx], region)
    except BookmarkError as error:
        log.warning("bookmark %s, context %s: can't look whether others read these files: %s", job, ctx, error)
        return
    if readers:
        log.warning(
            "bookmark %s, context %s: files are to be put away that others read as well: %s. They stay until each of "
            "these has read them",
            job,
            ctx,
            "; ".join(sorted({reader.name for reader in readers})),
        )
