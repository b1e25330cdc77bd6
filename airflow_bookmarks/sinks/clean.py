"""What a clean removes, as a change stores it and the next run carries it out, by kind of sink.

A reset or rewind with clean asks the sink of each undone output what is to go; whoever begins next has each sink check
its own part, all of them before the first removal, and remove it. Files are listed for all outputs together, as every
version has stored them; what any other sink lists is a part for each output.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.run import FILES_SINK, RunKey, RunState
from airflow_bookmarks.core.text.deflated import deflated, inflated
from airflow_bookmarks.sinks.sink import Sink, StoredOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.store.blobs import BlobStore

HEAD_CLEANING = "HEAD, cleaning"  # the item that lists what to clean, as errors name it


@dataclass(frozen=True, slots=True)
class CleanPart:
    """What a clean removes of one output of a run that is not in files; `listed` is JSON in the words of its sink."""

    sink: str
    run: RunKey
    output: str
    listed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, output: StoredOutput, listed: Mapping[str, Any] | None = None) -> CleanPart:
        """Return the part of one output."""
        return cls(output.entry.sink, output.run.key, output.name, {} if listed is None else listed)

    def encode(self) -> dict[str, Any]:
        """Return it as stored."""
        return {"sink": self.sink, "run": str(self.run), "output": self.output, "listed": dict(self.listed)}

    @classmethod
    def decode(cls, value: Mapping[str, Any]) -> CleanPart:
        """Return what `encode` wrote; raise ValueError, KeyError or TypeError where it is something else."""
        sink, output = value["sink"], value["output"]
        if not isinstance(sink, str) or not isinstance(output, str):
            raise TypeError("a name in it is no text")
        if sink == FILES_SINK:
            raise ValueError("files have no part of it")  # it would stand in the place of all that is listed of files
        return cls(sink, RunKey.parse(value["run"]), output, dict(value["listed"]))


@dataclass(frozen=True, slots=True)
class CleanList:
    """What a clean removes: folders in which runs staged, files that they published, and `parts` in other sinks.

    `versions` holds what was published under the name of a file: if the content is another by now, the file is not the
    run's, and stays.
    """

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[CleanPart, ...] = ()

    def encode(self) -> bytes:
        """Return it as stored: a JSON object of what it has, deflated; `parts` are there only if there are any."""
        document: dict[str, Any] = {
            "folders": list(self.folders),
            "files": list(self.files),
            "versions": dict(self.versions),
        }
        if self.parts:
            document["parts"] = [part.encode() for part in self.parts]
        return deflated(document)

    @classmethod
    def decode(cls, body: bytes) -> CleanList:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        try:
            document = inflated(body, "clean list")
            versions = dict(document.get("versions", {}))
            parts = tuple(CleanPart.decode(part) for part in document.get("parts", ()))
            listed = cls(tuple(document["folders"]), tuple(document["files"]), versions, parts)
            if not all(isinstance(path, str) for path in (*listed.folders, *listed.files)):
                raise TypeError("a path in it is no text")
            return listed
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateCorruptError(f"a stored clean list can't be read ({error}); nothing was changed") from error

    @classmethod
    def joined(cls, lists: Iterable[CleanList]) -> CleanList:
        """Merge several lists; of two entries for one file or output, the later one counts."""
        folders: dict[str, None] = {}
        files: dict[str, None] = {}
        versions: dict[str, str] = {}
        parts: dict[tuple[RunKey, str], CleanPart] = {}
        for each in lists:
            folders.update(dict.fromkeys(each.folders))
            files.update(dict.fromkeys(each.files))
            versions.update(each.versions)
            parts.update({(part.run, part.output): part for part in each.parts})
        return cls(tuple(folders), tuple(files), versions, tuple(parts.values()))

    def by_sink(self) -> Mapping[str, CleanList]:
        """Return what each sink has listed, by the name of its kind."""
        found: dict[str, CleanList] = {}
        if self.folders or self.files:
            found[FILES_SINK] = replace(self, parts=())
        for part in self.parts:
            found[part.sink] = CleanList(parts=(*found.get(part.sink, CleanList()).parts, part))
        return found

    def remaining(self, there: Sequence[FileInfo | None]) -> list[str]:
        """Return those of `files` that are still as published; `there` is each as it is now, None: gone."""
        return [
            info.path
            for path, info in zip(self.files, there, strict=True)
            if info is not None and self.versions.get(path, info.version) == info.version
        ]


@dataclass(frozen=True, slots=True)
class CleanGround:
    """The job that is cleaned: whose it is, and its runs that are no history any more.

    `undone` returns the runs with numbers from the first to the last argument that are no living history, by number and
    each of their fences.
    """

    territory: Territory
    blobs: BlobStore
    undone: Callable[[int, int], Mapping[tuple[int, int], Run]]

    def output_of(self, part: CleanPart) -> StoredOutput:
        """Return the output that a part names.

        Raises:
            OutOfBoundsError: no run of this job that is undone or given up has it.
        """
        key = part.run
        run = self.undone(key.number, key.number).get((key.number, key.fence))
        is_over = run is not None and (run.state.is_committed or run.state is RunState.ABANDONED)
        entry = None if run is None else run.outputs.get(part.output)
        if run is None or not is_over or entry is None or entry.sink != part.sink:
            why = "no run of this job that is undone or given up has written it"
            raise self.territory.refuse(HEAD_CLEANING, f"{part.sink}: run {key}, output {part.output!r}", why)
        return StoredOutput(self.territory, run, part.output, self.blobs)


class Removal(Protocol):
    """What a clean removes of one sink: fixed and checked, and nothing of it is done. Both steps can be repeated."""

    def remove_staged(self) -> None:
        """Remove what the runs have staged, in all sinks before anything visible: then nothing is published any more.

        Raises:
            OSError, PublishError: it can't be done; the clean stays to be done.
        """
        ...

    def remove_visible(self) -> None:
        """Remove what the runs have made visible.

        Raises:
            OSError, PublishError: it can't be done; the clean stays to be done.
        """
        ...


class CleanedSink(Sink):
    """A sink, staged or by itself, from which a clean can remove what undone runs have staged and made visible.

    It also returns None from `why_not_clean` of an output that it can clean.
    """

    @abstractmethod
    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        """Return what goes with an output whose run is undone, or given up while it was open: of all its revisions.

        A sink that commits by itself lists each output, also where nothing has landed: its tokens are burned with it.
        `replaced` are files that the publishes of later runs have deleted, so that nobody misses them.

        Raises:
            CleanRefusedError: something else has touched what the run made visible.
        """

    @abstractmethod
    def left(self, output: StoredOutput) -> CleanList | None:
        """Return what an output whose run was undone before has still visible, unchanged; None: that is not known.

        Raises:
            SourceError, OptionError, OSError: the target is out of reach.
        """

    @abstractmethod
    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Removal]:
        """Return the removal of what the sink has listed, checked as a whole: nothing is removed before all of it is.

        Raises:
            OutOfBoundsError: it names what no undone run of the job has staged or made visible.
        """

    def check_visible(self, output: StoredOutput) -> None:
        """Make sure that what a run lists as made visible can be its own, because a clean removes it.

        Raises:
            OutOfBoundsError: something of it is not.
        """
