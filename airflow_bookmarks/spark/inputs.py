"""What a run reads, as far as its outputs have to keep out of it, and as its operator has declared it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.glob import Exclusions, NamePattern
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.partition import is_partition
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.sources.scope import Names, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.lifecycle.manifest import Manifests
    from airflow_bookmarks.sources.file_options import FileOptions


class Inputs:
    """The sources and upstreams that one run of `job` reads.

    Args:
        upstreams: the upstream jobs that the operator declared; with none any may be read.
        untils: up to which of their runs, as the operator has it.
    """

    def __init__(self, job: str, upstreams: Sequence[str], untils: Mapping[str, int]) -> None:
        self._job, self._upstreams, self._untils = job, tuple(upstreams), untils
        self._read: set[str] = set()
        self._places: list[tuple[Place, bool]] = []
        self._published: dict[str, Place] = {}
        self._targets: dict[str, bool] = {}

    @property
    def unread_upstreams(self) -> Sequence[str]:
        """The declared upstream jobs that were not read by now."""
        return [job for job in (*self._upstreams, *self._untils) if job not in self._read]

    def note_source(self, places: Sequence[Place], *, recursive: bool) -> None:
        """Remember a source of files that this run reads, to keep its outputs out of it; before it is planned.

        Raises:
            OptionError: an output that was written already lies in it.
        """
        sources = [(place, recursive) for place in places]
        for target, overwrites in self._targets.items():
            self._check_sources(sources, target, overwrites=overwrites)
        self._places += sources

    def note_upstream(self, roots: Sequence[str]) -> None:
        """Remember where an upstream publishes what this run reads, so that no output replaces it.

        An append beside it does no harm: of an upstream those files are read that its runs list.

        Raises:
            OptionError: an output that was written already replaces it.
        """
        published = {root: Place(root) for root in roots}
        for target, overwrites in self._targets.items():
            self._check_upstreams(published.values(), target, overwrites=overwrites)
        self._published |= published

    def check_target(self, target: str, *, overwrites: bool) -> None:
        """Make sure that an output doesn't lie where this run reads, by now or later.

        Raises:
            OptionError: the next run would read its own output, or the overwrite would delete the source.
        """
        self._check_sources(self._places, target, overwrites=overwrites)
        self._check_upstreams(self._published.values(), target, overwrites=overwrites)
        self._targets[target] = overwrites or self._targets.get(target, False)

    def _check_sources(self, sources: Iterable[tuple[Place, bool]], target: str, *, overwrites: bool) -> None:
        for place, recursive in sources:
            if place.reads(target, recursive=recursive) or (overwrites and place.lies_in(target)):
                raise OptionError(
                    f"job {self._job!r}: the target {target!r} and the source {place.root!r} lie within each other: "
                    "the job would read, or replace, its own input. Nothing was published or committed. Write "
                    "somewhere else."
                )

    def _check_upstreams(self, published: Iterable[Place], target: str, *, overwrites: bool) -> None:
        for place in published if overwrites else ():
            if place.reads(target, recursive=False) or place.lies_in(target):
                raise OptionError(
                    f"job {self._job!r}: the target {target!r} is to be overwritten, and an upstream that this run "
                    f"reads publishes to {place.root!r}: the job would delete the output of another job. Nothing was "
                    "published or committed. Write somewhere else, or append."
                )

    def check_manifests(
        self, manifests: Manifests | None, ctx: str, places: Sequence[Place], options: FileOptions
    ) -> None:
        """Make sure that the manifests of this run don't lie where a context reads; before it is planned.

        Raises:
            OptionError: each run would read those of the run before it.
        """
        if manifests is None:
            return
        for place in places:
            if _lists(place, manifests.path(ctx), options):
                raise OptionError(
                    f"job {self._job!r}: the manifests below {manifests.folder!r} lie in the source {place.root!r} of "
                    f"context {ctx!r}: each run would read those of the run before it. Nothing was read or changed. "
                    "Let manifest_uri be somewhere else, or in a folder whose name begins with an underscore."
                )

    def until(self, key: str, given: int | None) -> int | None:
        """Return up to which run an upstream is to be read: what the script says, else the operator; None: no bound.

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

    def check_upstream(self, job: str) -> None:
        """Make sure that an upstream that is read is one that the operator declared, if it declared any.

        Raises:
            OptionError: it is not.
        """
        check_name("job", job)
        if self._upstreams and job not in self._upstreams:
            raise OptionError(
                f"job {self._job!r} reads upstream {job!r}, and its operator declares bookmark_upstream="
                f"{list(self._upstreams)}. Nothing was read or changed. Add it there: edges and lineage follow "
                "from it."
            )
        self._read.add(job)


def _lists(place: Place, path: str, options: FileOptions) -> bool:
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
