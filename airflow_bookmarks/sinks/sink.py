"""The two kinds of sink, as the lifecycle meets them: with the stored output, without the script that wrote it.

    staged         stage -> (commit of the bookmark) -> publish -> (mark) -> sweep
    by itself      (everything else is stored) -> the rows land -> (commit of the bookmark)

A staged sink makes nothing visible before the commit, and publishes after it, as often as it takes, from any process. A
sink that commits by itself makes rows visible in one step of its own; recovery burns the tokens of dead drivers, and
then asks what has landed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from airflow_bookmarks.sinks.entry import landing_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import OutputEntry, Run, RunKey
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.store.blobs import BlobStore

NOT_TAKEN_BACK = "went to a sink ({}) that can't take rows back"


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """One output of a run item: all that a sink is given to publish, burn or look for it.

    `territory` is the job whose output it is; `blobs` hold the lists that the output refers to.
    """

    territory: Territory
    run: Run
    name: str
    blobs: BlobStore

    @property
    def entry(self) -> OutputEntry:
        """The output as stored."""
        return self.run.outputs[self.name]

    def __str__(self) -> str:
        return f"job {self.territory.job!r}, run {self.run.key}, output {self.name!r}"


@dataclass(frozen=True, slots=True)
class SideOutput:
    """One output of a pause or disable run, all that its sink is given to publish it. Nothing of it is stored.

    `token` is what tells what this run publishes from what any other does; `staged` is what the script says it staged.
    """

    territory: Territory
    option: str
    token: str
    name: str
    entry: OutputEntry
    staged: Staged

    @property
    def item(self) -> str:
        """The run, as errors name it."""
        return f"{self.option} run"

    def __str__(self) -> str:
        return f"job {self.territory.job!r}, {self.item}, output {self.name!r}"


@dataclass(frozen=True, slots=True)
class PublishSteps:
    """What a long publish tells the run that makes it.

    `done` is called after each step that can't be taken back; `monotonic` counts the seconds between lines of progress.
    """

    done: Callable[[], None]
    monotonic: Callable[[], float]


class Publication(Protocol):
    """What the publish of one output will change: fixed and checked, and nothing of it is done."""

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Make the output visible; return how many files (or rows, or whatever the sink counts) that were.

        Repeatable: a publish that was killed anywhere is finished by doing it again, in any process.

        Args:
            check_held: raises `FencedError` unless the job is still the publisher's; its argument says what is about to
                be done. Called before anything is removed that others may have made since.

        Raises:
            PublishError: it can't be done; the publish stays due.
            FencedError: the job was taken from the publisher before it removed anything.
        """
        ...


class Sink(ABC):
    """One kind of sink. `kind` is stored with each output and never changes."""

    kind: ClassVar[str]
    commits_by_itself: ClassVar[bool]

    def reaching(self, databases: DatabaseAccess) -> Sink:
        """Return the sink with what finds the logins of databases; one that needs none returns itself."""
        return self

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why a clean can't remove what an output has made visible; None if it can."""
        return NOT_TAKEN_BACK.format(entry.sink)

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        """Return whether a target that gets the same rows again, by another run, holds them once.

        So it is where they replace those with the same key, or all that was there. False, which is the default, lets
        the preview of a reset or rewind warn that readers would find them twice. `entry` may be of an earlier version
        of the kind: what it does not tell counts as False.
        """
        return False

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        """Return why a run with such an output can't be replayed; None if the sink makes a revision of it.

        A revision is staged in a place of its own. Its publish replaces what the run made visible before it: under each
        of `run.fences` but that of the place.
        """
        return f"it wrote to a sink ({entry.sink}) that can't replace what a run has made visible"


class StagedSink(Sink):
    """A sink that stages what a run writes, and makes it visible after the commit."""

    commits_by_itself = False
    clears_as_it_publishes: ClassVar[bool] = False
    """Whether a publish leaves nothing of what the run has staged: then no sweep follows it, unless an output was left
    out, and what failed writes of the run have left waits for the sweep of the next begin."""

    @abstractmethod
    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        """Return the output as stored before the first byte is written, and the staging root that it lies in.

        The root is listed on the head until it is swept; None if there is nothing to sweep. Two run keys never share a
        place.
        """

    @abstractmethod
    def prepare(self, output: StoredOutput) -> Publication | None:
        """Return what the publish of an output changes, checked as a whole; None if it was left out at the commit.

        All outputs of a run are prepared before the first is published.

        Raises:
            OutOfBoundsError: state names something that is not the job's. Nothing was changed.
        """

    def joined(self, publications: Mapping[str, Publication]) -> Mapping[tuple[str, ...], Publication]:
        """Return what publishes outputs of one run, by the names of their outputs: fewer, where one step shows several.

        Args:
            publications: what `prepare` returned, by the name of the output.

        Returns:
            Each name in exactly one key; a publication of several shows all of them or none. Default: each by itself.
        """
        return {(name,): each for name, each in publications.items()}

    def is_unpublished(self, output: StoredOutput) -> bool:
        """Return whether nothing of an output of a committed run is visible; False: something is, or it is not known.

        A change that gives such a run up asks this: it then says that no row comes twice, and a clean has nothing to
        remove. So while a publish is under way the answer is False.

        Raises:
            OutOfBoundsError: state names something that is not the job's.
            OSError, SourceError, OptionError: the target is out of reach.
        """
        return False

    @abstractmethod
    def check_root(self, territory: Territory, root: str) -> None:
        """Make sure that a staging root is one of the job, before any root is swept.

        Raises:
            OutOfBoundsError: it is not.
        """

    @abstractmethod
    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """Remove what runs of this fence and lower ones have staged in a root, and nothing of higher ones.

        Called only when nothing of these fences is due or open. What is gone already is no error.

        Raises:
            OutOfBoundsError: it is no root of the job. OSError, SourceError, OptionError: it is out of reach.
        """


class SidewaysSink(StagedSink):
    """A staged sink that also takes what pause and disable runs write: staged, and published without a commit.

    Such a run is part of no history: it has no run key, it is published once at most, and no other run settles it. A
    staged sink without this capability is refused to it.
    """

    @abstractmethod
    def stage_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        """Return the output as `run` (the id of a pause or disable run) stages it: where no other run stages or sweeps.

        Nothing is written yet.
        """

    @abstractmethod
    def prepare_aside(self, output: SideOutput) -> Publication:
        """Return what the publish of an output changes, checked as a whole; see `StagedSink.prepare`."""

    @abstractmethod
    def sweep_aside(self, output: SideOutput) -> None:
        """Remove what the run has staged, published or not.

        Raises:
            BookmarkError, OSError: it can't be removed.
        """


class CollectedSink(SidewaysSink):
    """A sink in which `gc` finds and removes what killed pause and disable runs have left staged.

    Nothing is stored of such a run before it publishes, so only its sink can tell what it has left: by the places
    beside the staging of the job's other runs.
    """

    @abstractmethod
    def left_aside(self, territory: Territory, root: str) -> Mapping[str, str]:
        """Return where each pause or disable run of the job has something staged, by the id that `stage_aside` got.

        `root` is a staging root of the job, as `stage` returned it. Runs at work are among them: `gc` tells by the id
        when a run began, and leaves those alone that may still be at work.

        Raises:
            OutOfBoundsError: it is no root of the job. OSError, SourceError, OptionError: it is out of reach.
        """

    @abstractmethod
    def remove_aside(self, territory: Territory, root: str, run: str) -> None:
        """Remove what a pause or disable run has staged, and nothing visible. What is gone already is no error.

        Raises:
            OutOfBoundsError: `root` is no root of the job. OSError, SourceError, OptionError: it is out of reach.
        """


class CommittingSink(Sink):
    """A sink that commits by itself, under the token of the run."""

    commits_by_itself = True

    def place(self, territory: Territory, key: RunKey, output: str, request: StagingRequest) -> OutputEntry:
        """Return the output as stored before its rows land. Its place may name the token under which they do.

        The writer gets the place back. Default: none.
        """
        return landing_entry(request)

    def place_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        """Return the output as `run` (the id of a pause or disable run) writes it, which nothing settles: see `place`.

        Its place, if it names a token, names that of no other run.
        """
        return landing_entry(request)

    def why_not_here(self) -> str | None:
        """Return why this process can neither burn nor look, as half a sentence; None, the default, if it can.

        An open run with such an output is then refused as a whole, and left as it is.
        """
        return None

    def figures(self, output: StoredOutput) -> Mapping[str, Any]:
        """Return what the record says of rows that have landed, such as `rows`, by the names that outputs store.

        Asked of a run that is taken over, whose driver died before it could tell. Default: nothing.
        """
        return {}

    @abstractmethod
    def burn(self, output: StoredOutput, fence: int) -> None:
        """Make every token of the output with a fence below `fence` unusable."""

    @abstractmethod
    def landed(self, output: StoredOutput) -> bool:
        """Return whether rows lie under the token of the run; called only after `burn`.

        Ask for the token of each of `run.fences`: a run that was taken over before has a fence of its own and the rows
        of the one that wrote them, and whoever took it over may have died before its commit.
        """
