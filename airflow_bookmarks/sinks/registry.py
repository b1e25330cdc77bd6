"""The registry of the kinds of sink. A new kind is an object here, and a writer under `spark/sinks`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SinkUnknownError
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.sink import NOT_TAKEN_BACK, CommittingSink, StagedSink
from airflow_bookmarks.sinks.staging import facts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.sinks.sink import Sink
    from airflow_bookmarks.sinks.staging import StagingRequest

_ROOT_OF_A_KIND = re.compile(r"([a-z0-9_-]+):(?!//)(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SinkRegistry:
    """The kinds of sink that a process knows, by the name under which an output stores its kind."""

    sinks: Mapping[str, Sink]

    @classmethod
    def of(cls, *sinks: Sink) -> SinkRegistry:
        """Return a registry of these kinds."""
        return cls({sink.kind: sink for sink in sinks})

    def extended(self, *sinks: Sink) -> SinkRegistry:
        """Return a registry of these kinds as well; of two with one name, the later one counts."""
        return SinkRegistry({**self.sinks, **SinkRegistry.of(*sinks).sinks})

    def find(self, kind: str) -> Sink | None:
        """Return the kind of that name; None where it is not known here."""
        return self.sinks.get(kind)

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
        has to know it before it settles this one.
        """
        sink = self.find_staged(request.sink)
        if sink is None:
            return OutputEntry(request.sink, request.target, "", facts_of(request), commits_by_itself=True), None
        entry, root = sink.stage(territory, key, output, request)
        return entry, None if root is None else stored_root(sink.kind, root)

    def of_root(self, job: str, stored: str) -> tuple[StagedSink, str]:
        """Return the sink that staged in a root which the head lists, and the root as that sink names it.

        Raises:
            SinkUnknownError: its kind is not known here.
        """
        match = _ROOT_OF_A_KIND.fullmatch(stored)
        kind, root = (FilesSink.kind, stored) if match is None else (match[1], match[2])
        sink = self.find_staged(kind)
        if sink is None:
            raise SinkUnknownError(
                f"job {job!r}: earlier runs have staged in {root!r}, in a sink of kind {kind!r}, which is not known "
                "here. Nothing was swept, read or written. Run the job where the sink is known: with the version of "
                "this package, and the script, that made those runs."
            )
        return sink, root

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why a clean can't remove what an output has made visible; None if it can."""
        sink = self.find(entry.sink)
        return NOT_TAKEN_BACK.format(entry.sink) if sink is None else sink.why_not_clean(entry)

    def check_roots(self, territory: Territory, roots: list[str]) -> None:
        """Check all staging roots that the head lists, before any of them is swept.

        Raises:
            OutOfBoundsError: one is none of this job. SinkUnknownError: the kind of one is not known here.
        """
        for stored in roots:
            sink, root = self.of_root(territory.job, stored)
            sink.check_root(territory, root)

    def sweep(self, territory: Territory, stored: str, fence: int) -> None:
        """Sweep one staging root that the head lists: see `StagedSink.sweep`."""
        sink, root = self.of_root(territory.job, stored)
        sink.sweep(territory, root, fence)


def stored_root(kind: str, root: str) -> str:
    """Return a staging root as the head lists it: that of files as it is, any other after the name of its kind.

    Example:
        >>> stored_root("files", "s3a://lake/clean/_bookmarks/prod/job"), stored_root("jdbc", "dw/job")
        ('s3a://lake/clean/_bookmarks/prod/job', 'jdbc:dw/job')
    """
    return root if kind == FilesSink.kind else f"{kind}:{root}"


SINKS = SinkRegistry.of(FilesSink())
