"""The registry of the kinds of sink. A new kind is an object here, and a writer under `spark/sinks`.

A kind of a user's own is given to the run by its script (`extended`), or named by an entry point of an installed
package: then each process where that is installed knows it, and can settle without the script what a run left open.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError, MisuseError, OptionError, OutOfBoundsError, SinkUnknownError
from airflow_bookmarks.own_kind import load_kind
from airflow_bookmarks.sinks.clean import CleanedSink
from airflow_bookmarks.sinks.delta.sink import DeltaSink
from airflow_bookmarks.sinks.entry import landing_entry
from airflow_bookmarks.sinks.examined import ExaminedSink
from airflow_bookmarks.sinks.failure import named_failure, own_errors
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.iceberg.sink import IcebergSink
from airflow_bookmarks.sinks.jdbc.sink import JdbcSink
from airflow_bookmarks.sinks.redshift.sink import RedshiftSink
from airflow_bookmarks.sinks.sink import NOT_TAKEN_BACK, CollectedSink, CommittingSink, SidewaysSink, StagedSink

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import OutputEntry, RunKey
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.sinks.sink import Sink
    from airflow_bookmarks.sinks.staging import StagingRequest

log = logging.getLogger(__name__)

GROUP = "airflow_bookmarks.sinks"  # of entry points: the name of a kind, and the class that it is made of

_NOTHING_WRITTEN = "Nothing of it was written. Mend the cause, and run the job again."
_NOT_REPLAYED = "Nothing was planned or read. Mend the cause, and replay it again."
_NOTHING_SWEPT = "Nothing was swept, read or written. Mend the cause, and run the job again."
_NAME_OF_A_KIND = r"[a-z0-9_-]+"
_ROOT_OF_A_KIND = re.compile(rf"({_NAME_OF_A_KIND}):(?!//)(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SinkRegistry:
    """The kinds of sink that a process knows, by the name under which an output stores its kind.

    `databases` finds the logins of those that reach a database; None: each finds them by itself.
    """

    sinks: Mapping[str, Sink]
    databases: DatabaseAccess | None = None

    @classmethod
    def of(cls, *sinks: Sink) -> SinkRegistry:
        """Return a registry of these kinds.

        Raises:
            MisuseError: one that stages has a name under which its staging roots could not be found again.
        """
        for sink in sinks:
            _check_name(sink)
        return cls({sink.kind: sink for sink in sinks})

    def extended(self, *sinks: Sink) -> SinkRegistry:
        """Return a registry of these kinds as well; of two with one name, the later one counts."""
        return replace(self, sinks={**self.sinks, **SinkRegistry.of(*sinks).sinks})

    def reaching(self, databases: DatabaseAccess) -> SinkRegistry:
        """Return a registry whose kinds reach databases by this access: that of the store, where they do I/O."""
        return replace(self, databases=databases)

    def find(self, kind: str) -> Sink | None:
        """Return the kind of that name; None where it is not known here, for the reason of `why_unknown`.

        Of installed packages, the entry point of that name is loaded when it is first asked for.
        """
        sink = self.sinks.get(kind) or _installed(kind)[0]
        return sink if sink is None or self.databases is None else sink.reaching(self.databases)

    def why_unknown(self, kind: str) -> str:
        """Say why a kind is not known here, to stand behind the error that it is not; empty if no package names it."""
        why = None if kind in self.sinks else _installed(kind)[1]
        return "" if why is None else f" {why}"

    def knows(self, entry: OutputEntry) -> bool:
        """Whether an output can be settled here: its kind is known, and makes rows visible in the way that it stores.

        One that an earlier version of the kind has let commit by itself is none that a staged sink can look for.
        """
        sink = self.find(entry.sink)
        return sink is not None and sink.commits_by_itself == entry.commits_by_itself

    def find_staged(self, kind: str) -> StagedSink | None:
        """Return the kind of that name, if it is a known one that stages."""
        sink = self.find(kind)
        return sink if isinstance(sink, StagedSink) else None

    def find_committing(self, kind: str) -> CommittingSink | None:
        """Return the kind of that name, if it is a known one that commits by itself."""
        sink = self.find(kind)
        return sink if isinstance(sink, CommittingSink) else None

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        """Return the output as stored before the write, and the staging root as the head lists it (None: none).

        A sink that is not known here commits by itself: the script does all that it needs, and a later run of the job
        has to know it before it settles this one. One whose entry point can't be loaded is refused: a process that
        can load it might take what is stored here for another way to commit.

        Raises:
            SinkUnknownError: an installed package names its kind, and does not give it.
            MisuseError: the staging root could not be found again. SourceError: a kind of a user's own failed.
        """
        sink = self._writing(territory, output, request)
        committing = self.find_committing(request.sink)
        if committing is not None:
            with named_failure(committing.kind, f"job {territory.job!r}, output {output!r}", _NOTHING_WRITTEN):
                return committing.place(territory, key, output, request), None
        if sink is None:
            return landing_entry(request), None
        with named_failure(sink.kind, f"job {territory.job!r}, output {output!r}", _NOTHING_WRITTEN):
            entry, root = sink.stage(territory, key, output, request)
        return entry, None if root is None else _listed_root(sink, root)

    def stage_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        """Return the output as a pause or disable run stages it: see `SidewaysSink.stage_aside`.

        Raises:
            OptionError: its sink stages, and has no place for such a run. SinkUnknownError, SourceError: see `stage`.
        """
        sink = self._writing(territory, output, request)
        if isinstance(sink, SidewaysSink):
            with named_failure(sink.kind, f"job {territory.job!r}, output {output!r}", _NOTHING_WRITTEN):
                return sink.stage_aside(territory, run, output, request)
        committing = self.find_committing(request.sink)
        if committing is not None:
            with named_failure(committing.kind, f"job {territory.job!r}, output {output!r}", _NOTHING_WRITTEN):
                return committing.place_aside(territory, run, output, request)
        if sink is None:
            return landing_entry(request)
        raise OptionError(
            f"job {territory.job!r}: output {output!r} goes to a sink of kind {request.sink!r}, which makes rows "
            "visible after a commit alone, and a pause or disable run has none. Nothing of it was written. Write the "
            "output of such a run elsewhere, or leave it out; or let the kind be a SidewaysSink."
        )

    def find_sideways(self, kind: str) -> SidewaysSink | None:
        """Return the kind of that name, if it is a known one that takes what pause and disable runs write."""
        sink = self.find(kind)
        return sink if isinstance(sink, SidewaysSink) else None

    def _writing(self, territory: Territory, output: str, request: StagingRequest) -> StagedSink | None:
        """Return the sink that stages what is written; None if it commits by itself."""
        sink = self.find_staged(request.sink)
        broken = self.why_unknown(request.sink)
        if broken:
            raise SinkUnknownError(
                f"job {territory.job!r}: output {output!r} goes to a sink of kind {request.sink!r}, which is not known "
                f"here. Nothing of it was written.{broken}"
            )
        return sink

    def of_root(self, job: str, stored: str) -> tuple[StagedSink, str]:
        """Return the sink that staged in a root which the head lists, and the root as that sink names it.

        Raises:
            SinkUnknownError: its kind is not known here.
        """
        kind, root = _kind_and_root(stored)
        sink = self.find_staged(kind)
        if sink is None:
            raise SinkUnknownError(
                f"job {job!r}: earlier runs have staged in {root!r}, in a sink of kind {kind!r}, which is not known "
                "here. Nothing was swept, read or written. Run the job where the sink is known: with the version of "
                f"this package, and the script, that made those runs.{self.why_unknown(kind)}"
            )
        return sink, root

    def may_lie_in(self, job: str, stored: str, entry: OutputEntry) -> bool:
        """Whether an output may be staged in a root that the head lists.

        Files lie below their root; a kind of a user's own names its places as it likes.

        Raises:
            SinkUnknownError: the kind of the root is not known here.
        """
        sink, root = self.of_root(job, stored)
        return entry.sink == sink.kind and (not entry.lies_in_files or entry.place.startswith(f"{root}/"))

    def find_to_collect(self, stored: str) -> tuple[CollectedSink, str] | None:
        """Return the sink that staged in a root which the head lists, and the root as that sink names it.

        None if it is not known here, or can't tell what killed pause and disable runs left.
        """
        kind, root = _kind_and_root(stored)
        sink = self.find(kind)
        return (sink, root) if isinstance(sink, CollectedSink) else None

    def find_to_examine(self, kind: str) -> ExaminedSink | None:
        """Return the kind of that name, if it is a known one that tells what lies in it."""
        sink = self.find(kind)
        return sink if isinstance(sink, ExaminedSink) else None

    def staging_to_examine(self, stored: str) -> tuple[ExaminedSink, str] | None:
        """Return the sink that staged in a root which the head lists, and the root as that sink names it.

        None if it is not known here, or can't tell what lies there.
        """
        kind, root = _kind_and_root(stored)
        sink = self.find_to_examine(kind)
        return None if sink is None else (sink, root)

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why a clean can't remove what an output has made visible; None if it can."""
        sink = self.find(entry.sink)
        if sink is not None:
            why_not = sink.why_not_clean(entry)
            return NOT_TAKEN_BACK.format(entry.sink) if why_not is None and not _can_clean(sink) else why_not
        why = self.why_unknown(entry.sink).strip(" .")
        return NOT_TAKEN_BACK.format(f"{entry.sink}: {why}" if why else entry.sink)

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        """Whether a target that gets the same rows again holds them once; False where that can't be known here."""
        sink = self.find(entry.sink)
        try:
            with own_errors(entry.sink):
                return sink is not None and sink.holds_rows_once(entry)
        except BookmarkError as error:
            log.warning("bookmark: whether %s would hold rows twice is not known: %s", entry.target, error)
            return False

    def find_to_clean(self, kind: str) -> CleanedSink | None:
        """Return the kind of that name, if it is a known one that can be cleaned."""
        sink = self.find(kind)
        return sink if isinstance(sink, CleanedSink) else None

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        """Return why a run with such an output can't be replayed; None if it can.

        Raises:
            SourceError: a kind of a user's own failed.
        """
        if entry.commits_by_itself:
            return "it wrote to a sink that commits by itself and can't take rows back"
        sink = self.find_staged(entry.sink)
        if sink is not None:
            with named_failure(sink.kind, f"its output in {entry.target}", _NOT_REPLAYED):
                return sink.why_not_replay(entry)
        why = self.why_unknown(entry.sink).strip(" .")
        return f"it wrote to a sink of kind {entry.sink!r}, which is not known here{f': {why}' if why else ''}"

    def check_roots(self, territory: Territory, roots: list[str]) -> None:
        """Check all staging roots that the head lists, before any of them is swept.

        Raises:
            OutOfBoundsError: one is none of this job. SinkUnknownError: the kind of one is not known here.
            SourceError: a kind of a user's own failed.
        """
        for stored in roots:
            sink, root = self.of_root(territory.job, stored)
            with named_failure(sink.kind, f"job {territory.job!r}, staging root {root!r}", _NOTHING_SWEPT):
                sink.check_root(territory, root)

    def is_foreign(self, territory: Territory, stored: str) -> bool:
        """Whether a staging root that the head lists is none of the job; False where its kind is not known here."""
        try:
            self.check_roots(territory, [stored])
        except SinkUnknownError:
            return False
        except OutOfBoundsError:
            return True
        else:
            return False

    def is_own(self, territory: Territory, stored: str) -> bool:
        """Whether a known kind takes a staging root that the head lists for one of the job."""
        try:
            self.check_roots(territory, [stored])
        except (SinkUnknownError, OutOfBoundsError):
            return False
        else:
            return True

    def sweep(self, territory: Territory, stored: str, fence: int) -> None:
        """Sweep one staging root that the head lists: see `StagedSink.sweep`."""
        sink, root = self.of_root(territory.job, stored)
        with own_errors(sink.kind):
            sink.sweep(territory, root, fence)


def _can_clean(sink: Sink) -> bool:
    return isinstance(sink, CleanedSink)


@cache
def _installed(kind: str) -> tuple[Sink | None, str | None]:
    """Return the kind that an installed package names, and why it can't be had; both None where none names it."""
    return load_kind(GROUP, kind, _named)


def _named(made: object) -> dict[str, Sink]:
    if not isinstance(made, StagedSink | CommittingSink):
        return {}
    _check_name(made)
    return {made.kind: made}


def _check_name(sink: Sink) -> None:
    """Make sure that the staging roots of a kind, which the head lists after its name, are found again by it."""
    is_found = isinstance(sink.kind, str) and re.fullmatch(_NAME_OF_A_KIND, sink.kind)
    if isinstance(sink, StagedSink) and not is_found:
        raise MisuseError(
            f"{type(sink).__name__}.kind is {sink.kind!r}: the name of a sink that stages is made of a-z, 0-9, '_' and "
            "'-' alone, because its staging is listed after that name. The sink is not known, and nothing was read or "
            "written. Give it another name."
        )


def _kind_and_root(stored: str) -> tuple[str, str]:
    match = _ROOT_OF_A_KIND.fullmatch(stored)
    return (FilesSink.kind, stored) if match is None else (match[1], match[2])


def folders_among(roots: Iterable[str]) -> list[str]:
    """Return those of the staging roots that the head lists which are folders: sinks of other kinds name theirs."""
    return [root for stored in roots for kind, root in [_kind_and_root(stored)] if kind == FilesSink.kind]


def _listed_root(sink: StagedSink, root: str) -> str:
    stored = stored_root(sink.kind, root)
    if sink.kind != FilesSink.kind and _ROOT_OF_A_KIND.fullmatch(stored) is None:
        raise MisuseError(
            f"{type(sink).__name__}.stage() returns the staging root {root!r}: empty, or after that name the "
            "address of a folder, it would be taken for a folder of files. Nothing was read or written. Return None "
            "where there is nothing to sweep, and a root that does not begin with '//'."
        )
    return stored


def stored_root(kind: str, root: str) -> str:
    """Return a staging root as the head lists it: that of files as it is, any other after the name of its kind.

    Example:
        >>> stored_root("files", "s3a://lake/clean/_bookmarks/prod/job"), stored_root("jdbc", "dw/job")
        ('s3a://lake/clean/_bookmarks/prod/job', 'jdbc:dw/job')
    """
    return root if kind == FilesSink.kind else f"{kind}:{root}"


SINKS = SinkRegistry.of(FilesSink(), JdbcSink(), DeltaSink(), IcebergSink(), RedshiftSink())
