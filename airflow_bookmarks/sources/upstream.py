"""Plan what is new in another bookmarked job: its published runs that this consumer has not read.

Progress here is runs, which have no clock, no ties and no late data. Runs are selected by their state, upwards from
what was consumed, up to the first that is committed and not yet published.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import (
    JobUnknownError,
    LookRefusedError,
    MisuseError,
    OptionError,
    SourceChangedError,
    SourceError,
    SourceMissingError,
    SourceSwitchedError,
    StateCorruptError,
    UpstreamReplayedError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.plan import FilePlan, UpstreamPlan, UpstreamWindow, decode_moves, decode_published
from airflow_bookmarks.core.position import Position, UpstreamPosition, lowest_replayed
from airflow_bookmarks.core.rules.schema import compare
from airflow_bookmarks.core.run import OutputEntry, Run, RunState, SourceRef
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound, RunSize
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.core.text.stored_json import read_json
from airflow_bookmarks.core.timeline import Ancestry, has_living_number, last_common_run, living_runs
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.sources.files.planner import recheck_files
from airflow_bookmarks.sources.source import PlanInput, Recheck
from airflow_bookmarks.sources.way_back import way_back
from airflow_bookmarks.store.outputs import numbers_replacing, paths_replaced_by_sides
from airflow_bookmarks.store.transitions.collection import check_readable, collected_until

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.schema import Fold
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

OnRewind = Literal["fail", "rewind", "rewind_keep", "ignore"]
Alike = Literal["any", "layout", "columns"]


class RewindWanted(Exception):
    """Asks the lifecycle to take the consumer back, because its upstream went back to run `target` (no error).

    `keeps`: what the consumer's undone runs published stays where it is.
    """

    def __init__(self, upstream: str, target: int, *, keeps: bool = False) -> None:
        super().__init__(f"upstream {upstream!r} went back to run {target}")
        self.upstream, self.target, self.keeps = upstream, target, keeps


@dataclass(frozen=True, slots=True)
class _Selected:
    """Runs of the upstream that a window covers, and those that have deleted, or delete now, what they replaced.

    A run that was undone before its publish was done, `dropped`, is not among these: what it meant to replace stays
    where it is, except for what it had deleted by then.
    """

    window: list[Run]
    deleting: list[Run]
    dropped: list[Run]


@dataclass(frozen=True, slots=True)
class _Written:
    """What is to be read of one run: how it was written, and which of its files are there and not replaced."""

    number: int
    entry: OutputEntry
    paths: tuple[str, ...]
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class GivenLayout:
    """What a script says by itself of how files were written: their format, whether their columns, and the options.

    `recorded` names in small letters the options that each run stores which has set them.
    """

    format: str | None
    has_schema: bool
    options: Mapping[str, str] = field(default_factory=dict)
    recorded: Collection[str] = ()

    def covers(self, layouts: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a reader needs nothing that is stored, also of other runs that it reads: these stored the same."""
        is_all = self.format is not None and self.has_schema and bool(self.options)
        return is_all and all(self._agrees(layout) for layout in layouts)

    def _agrees(self, layout: Mapping[str, Any]) -> bool:
        stored = layout["options"]
        given = {name.lower(): value for name, value in self.options.items()}
        # One that only a reader knows changes nothing; one that was left at Spark's default is another than is given.
        options = {name: value for name, value in given.items() if name in stored or name in self.recorded}
        return layout == {"format": self.format, "partitionBy": [], "options": options}


_SELF_DESCRIBING = frozenset(["parquet", "orc"])  # formats, and how the names of their files end


class UpstreamSource:
    """The published, not yet consumed output of another job.

    Args:
        store: the store of both jobs.
        consumer: the job that reads.
        upstream: the job that is read.
        output: which of its outputs; needed where a run has several.
        on_rewind: what to do when runs that were consumed are undone or replayed: "fail"; "rewind" along, which removes
            what the consumer's runs that are undone published; "rewind_keep" along, which leaves it; or "ignore".
        until: read up to and including this run and no further, though more is published.
        bound: how much of it one run reads: whole published runs, at least up to the first that has anything.
        alike: what the runs of one window have in common: nothing ("any"), the layout, which is format, options and
            partition columns ("layout"), or the columns as well, so that the next run meets as a change that one went
            or has another type ("columns"). One frame has one of each: who makes one asks for it, and the window ends
            before the first run that was written otherwise. The rest is counted as left over by a bound.
        fold: what makes two spellings of a column's name one.
    """

    kind = "upstream"
    format: str | None = None  # each run of the upstream records its own

    def __init__(
        self,
        store: BookmarkStore,
        consumer: str,
        upstream: str,
        *,
        output: str | None = None,
        on_rewind: OnRewind = "fail",
        until: int | None = None,
        bound: Bound = UNBOUND,
        alike: Alike = "any",
        fold: Fold = str.lower,
    ) -> None:
        if upstream == consumer:
            raise OptionError(f"job {consumer!r} can't be its own upstream. Nothing was read or changed.")
        self._store, self._consumer, self._upstream = store, consumer, upstream
        self._wanted_output, self._on_rewind = output, on_rewind
        self._until, self._bound = until, bound
        self._alike, self._fold = alike, fold
        self._planned: tuple[UpstreamWindow, OutputEntry | None] | None = None
        self._before: UpstreamPosition | None = None
        self.last_published: int | None = None  # the last run there is to read, found by `plan`

    def ref(self) -> SourceRef:
        """Return the job; the position itself names the output."""
        return SourceRef(self.kind, self._upstream)

    def plan(self, found: PlanInput) -> UpstreamPlan:
        """Select the published runs above the position; see `Source.plan`."""
        head, selected, before = self._look(found)
        # What the position has read of an output proves that there was one, also where those runs were collected.
        output = self._output_of(selected.window, before) or before.output
        self._check_output(before, output)
        self.last_published = selected.window[-1].key.number if selected.window else before.run_number
        selected, left = self._bounded(selected, output)
        selected, written, beyond = self._cut(selected, output)
        left += beyond
        files, roots, replaced_by_sides = self._files(written)
        replaced = sum(each.replaced for each in written) + replaced_by_sides
        until = selected.window[-1].key.number if selected.window else before.run_number
        runs = tuple((run.key.number, run.revision) for run in selected.window)
        window = UpstreamWindow(
            self._upstream, output, before.run_number, until, head.epoch, head.changes, runs, replaced
        )
        skipped = {reason: count for reason, count in (("replaced", replaced), (OVER_BOUND, left)) if count}
        self._before = before
        self._planned = (window, _newest(written)) if written else None
        return UpstreamPlan(files, roots, len(files) + replaced + left, 0, skipped, window=window)

    def _bounded(self, selected: _Selected, output: str) -> tuple[_Selected, int]:
        """Keep the runs that the bound takes; return also how many files those have that are left for the next run."""
        if not self._bound.is_given:
            return selected, 0
        amounts = [_amount(run, output) for run in selected.window]
        count = self._bound.fitting(amounts)
        left = sum(amount.files for amount in amounts[count:])
        return replace(selected, window=selected.window[:count]), left

    def _look(self, found: PlanInput) -> tuple[Head, _Selected, UpstreamPosition]:
        """Return the upstream's head with the runs that are to be read, as they were at one moment.

        A replay between the two reads would be read and yet be news to the next run: then both are read again.
        """
        head = self._upstream_head()
        while True:
            before = self._position(found, head)
            self._check_rewound(before, head)
            self._check_until(head, before)
            selected = self._select(before.run_number, head)
            again = self._upstream_head()
            if (again.epoch, again.changes) == (head.epoch, head.changes):
                return head, selected, before
            head = again

    def _position(self, found: PlanInput, head: Head) -> UpstreamPosition:
        return (
            UpstreamPosition(self._upstream, self._wanted_output or "", 0, head.epoch, head.changes)
            if found.position is None
            else UpstreamPosition.decode(found.position)
        )

    def _upstream_head(self) -> Head:
        try:
            return self._store.head(self._upstream)
        except JobUnknownError as error:
            raise SourceMissingError(
                f"job {self._consumer!r} reads upstream {self._upstream!r}, and namespace {self._store.namespace!r} "
                "has no such bookmark yet. Nothing was read or changed. Check the name ('airflow-bookmarks list'), "
                "or run the upstream first (a BookmarkSensor waits for it)."
            ) from error

    def _check_rewound(self, before: UpstreamPosition, head: Head) -> None:
        """Look whether a run at or below the edge is undone or has a newer revision; if so, `on_rewind` decides.

        Where nothing of that is so, or it is to be ignored, the commit notes the new numbers.
        """
        if (before.epoch, before.changes) == (head.epoch, head.changes) or self._on_rewind == "ignore":
            return
        target = None
        if before.epoch != head.epoch:
            lines = self._store.lines(self._upstream)
            target = last_common_run(before.epoch, head.epoch, before.run_number, lines)
        replayed = self._replayed(before) if before.changes != head.changes else None
        if target is None and replayed is None:
            return
        if self._on_rewind in ("rewind", "rewind_keep"):
            goals = [goal for goal in (target, None if replayed is None else replayed - 1) if goal is not None]
            raise RewindWanted(self._upstream, min(goals), keeps=self._on_rewind == "rewind_keep")
        if target is not None:
            raise self._rewound(before, target)
        number = replayed or 0
        way = way_back(self._store, self._consumer, self._upstream, max(number - 1, 0))
        raise UpstreamReplayedError(self._consumer, self._upstream, before.run_number, number, way)

    def _rewound(self, before: UpstreamPosition, target: int) -> UpstreamRewoundError:
        way = way_back(self._store, self._consumer, self._upstream, target)
        return UpstreamRewoundError(self._consumer, self._upstream, before.run_number, target, way)

    def _replayed(self, before: UpstreamPosition) -> int | None:
        """Return the lowest consumed run that was replayed since it was read."""
        run = lowest_replayed(self._store.runs(self._upstream, until=before.run_number), before.changes)
        return None if run is None else run.key.number

    def _check_until(self, head: Head, before: UpstreamPosition) -> None:
        if self._until is None or self._until <= before.run_number:
            return
        until, job = self._until, self._upstream
        run = self._store.committed_run(job, until)
        if run is None or until > head.published:
            raise SourceMissingError(
                f"job {self._consumer!r} is to read upstream {job!r} up to run {until}, and that has published up to "
                f"run {head.published}. Nothing was read or changed. Give the run that the upstream reports."
            )
        lines = self._store.lines(job)
        if Ancestry.of(head.epoch, lines).has(run):
            return
        target = last_common_run(run.epoch, head.epoch, until, lines) or 0
        if self._on_rewind == "fail":
            raise self._rewound(before, target)
        self._until = None  # the run it names is undone: what is published now is all that can be read

    def _select(self, after: int, head: Head) -> _Selected:
        seen = [r for r in self._store.runs(self._upstream, after=after, until=head.run_number) if r.state.is_committed]
        if len(seen) < head.run_number - after:  # each number was committed once
            self._check_missing(after, head, {run.key.number for run in seen})
        living = self._living(seen, head)
        window: list[Run] = []
        for run in living_runs(seen, living):
            is_beyond = self._until is not None and run.key.number > self._until
            if run.state is RunState.COMMITTED or is_beyond:
                break
            window.append(run)
        deleting: list[Run] = []
        dropped: list[Run] = []
        for run in seen:
            is_dropped = run.state is RunState.COMMITTED and run.key != head.publishing
            (dropped if is_dropped else deleting).append(run)
        return _Selected(window, deleting, dropped)

    def _check_missing(self, after: int, head: Head, seen: set[int]) -> None:
        """Make sure that what is missing above the edge was undone anyway."""
        lines = self._store.lines(self._upstream)
        missing = (number for number in range(after + 1, head.run_number + 1) if number not in seen)
        lost = next((number for number in missing if has_living_number(head.epoch, lines, number - 1, number)), None)
        if lost is None:
            return
        check_readable(self._store, self._consumer, self._upstream, after)
        raise StateCorruptError(
            f"job {self._consumer!r}: run {lost} of upstream {self._upstream!r} is gone, and was not collected. "
            f"Nothing was read or changed. 'airflow-bookmarks doctor {self._upstream}' says what else is wrong."
        )

    def _living(self, runs: Iterable[Run], head: Head) -> Ancestry:
        if all(run.epoch == head.epoch for run in runs):
            return Ancestry({head.epoch: None})
        return self._store.ancestry(self._upstream, head.epoch)

    def _output_of(self, window: Sequence[Run], before: UpstreamPosition) -> str:
        names = sorted({name for run in window for name in run.outputs})
        if self._wanted_output is not None:
            is_known = before.run_number > 0 and before.output == self._wanted_output
            if names and self._wanted_output not in names and not is_known:
                self._check_ever_written(self._wanted_output)
            return self._wanted_output
        if len(names) > 1:
            raise OptionError(
                f"upstream {self._upstream!r} has several outputs: {names}. Nothing was read or changed. Say which "
                f"with .upstream({self._upstream!r}, output=...)."
            )
        return names[0] if names else ""

    def _check_ever_written(self, output: str) -> None:
        """Make sure that some run wrote an output: one that a window of runs did not write is an empty increment."""
        others: set[str] = set()
        for run in self._store.runs(self._upstream, reverse=True):
            if run.state.is_committed and output in run.outputs:
                return
            others |= set(run.outputs) if run.state.is_committed else set()
        raise OptionError(
            f"no run of upstream {self._upstream!r} ever wrote an output {output!r}; there is {sorted(others)}. "
            "Nothing was read or changed."
        )

    def _check_output(self, before: UpstreamPosition, output: str) -> None:
        if before.run_number > 0 and before.output not in ("", output):
            raise SourceSwitchedError(self._consumer, "", f"{self.ref()}:{before.output}", f"{self.ref()}:{output}")

    def _cut(self, selected: _Selected, output: str) -> tuple[_Selected, list[_Written], int]:
        """Keep the runs before the first one with another layout; return also how many files are left over."""
        written = self._written(selected, output)
        broken = self._break(written)
        if broken is None:
            return selected, written, 0
        number, why = broken
        log.warning(
            "bookmark %s: %s. One run reads what is alike: this one ends before run %d, and the next goes on with that",
            self._consumer,
            why,
            number,
        )
        window = [run for run in selected.window if run.key.number < number]
        left = sum(len(each.paths) for each in written if each.number >= number)
        return replace(selected, window=window), [each for each in written if each.number < number], left

    def _written(self, selected: _Selected, output: str) -> list[_Written]:
        replaced_by = numbers_replacing(self._store.blobs, selected.deleting, selected.dropped)
        written: list[_Written] = []
        for run in selected.window:
            entry, number = run.outputs.get(output), run.key.number
            if entry is not None and not entry.is_read_as_files:
                raise self._unreadable(number, output, entry)
            if entry is None or entry.publish is None:
                continue
            paths = [path for _, path in decode_moves(self._store.blobs.get(entry.publish))]
            kept = tuple(path for path in paths if replaced_by.get(path, 0) <= number)
            written.append(_Written(number, entry, kept, len(paths) - len(kept)))
        return written

    def _unreadable(self, number: int, output: str, entry: OutputEntry) -> SourceError:
        return SourceError(
            f"job {self._consumer!r}: run {number} of upstream {self._upstream!r} wrote output {output!r} to a sink of "
            f"kind {entry.sink!r} ({entry.target}), which can't be read as an upstream here. Nothing was read or "
            "changed: it does not count as consumed. Read another output of it (output=), or that place itself."
        )

    def _break(self, written: Sequence[_Written]) -> tuple[int, str] | None:
        """Return the first run that was written otherwise than those before it, and how; None where all are alike.

        A run without any file left can't be misread.
        """
        if self._alike == "any":
            return None
        last: _Written | None = None
        for each in written:
            if not each.paths:
                continue
            change = None if last is None else self._change(last.entry, each.entry)
            if last is not None and change is not None:
                runs = f"run {each.number} of upstream {self._upstream!r} was written otherwise than run {last.number}"
                return each.number, f"{runs}: {change}"
            last = each
        return None

    def _change(self, one: OutputEntry, other: OutputEntry) -> str | None:
        """Say what keeps two outputs from being read as one, None where nothing does."""
        was, now = _layout(one), _layout(other)
        changed = [f"{name} {was[name]!r}, then {now[name]!r}" for name in was if was[name] != now[name]]
        if changed:
            return "; ".join(changed)
        if self._alike == "layout" or one.schema is None or other.schema is None or one.schema == other.schema:
            return None
        before, after = (self._store.blobs.get(schema) for schema in (one.schema, other.schema))
        if not before or not after:
            return None
        difference = compare(read_json(before, "schema"), read_json(after, "schema"), self._fold)
        return None if difference.is_compatible else difference.in_words()

    def _files(self, written: Sequence[_Written]) -> tuple[Listing, tuple[str, ...], int]:
        """Return the files to read, where they lie, and how many a pause or disable run was asked to replace."""
        roots = tuple(dict.fromkeys(each.entry.target for each in written))
        if not roots:
            return Listing.of([]), (), 0
        paths = [path for each in written for path in each.paths]
        try:
            present = self._present(paths, open_one_filesystem(roots).stat(paths))
        except LookRefusedError:  # this process may not look: trust what the runs published
            present = self._as_published(written)
        return Listing.of(present), roots, len(paths) - len(present)

    def _as_published(self, written: Sequence[_Written]) -> list[FileInfo]:
        """Return the files as their runs recorded them.

        Raises:
            OptionError: runs of a version that recorded their names alone are among these.
        """
        found: list[FileInfo] = []
        for each in written:
            if each.entry.publish is None:
                continue
            of_run, wanted = decode_published(self._store.blobs.get(each.entry.publish)), set(each.paths)
            known = [file for file in of_run if isinstance(file, FileInfo) and file.path in wanted]
            if len(known) < len(wanted):
                raise OptionError(
                    f"run {each.number} of upstream {self._upstream!r} did not record the sizes of its files, and this "
                    "process does not look at them. Nothing was read or changed. The command line does."
                )
            found += known
        return found

    def _present(self, paths: Sequence[str], found: Sequence[FileInfo | None]) -> list[FileInfo]:
        gone = [path for path, info in zip(paths, found, strict=True) if info is None]
        replaced = paths_replaced_by_sides(self._store, self._upstream) if gone else set[str]()
        gone = [path for path in gone if path not in replaced]
        if gone:
            raise SourceChangedError(
                f"{len(gone)} file(s) that upstream {self._upstream!r} published are gone, the first: {gone[0]!r}. "
                f"Nothing was read or changed. Somebody else removed them: rewind {self._upstream!r} to before the "
                "run that wrote them, so that it publishes them again."
            )
        return [info for info in found if info is not None]

    def entry_of(self, plan: FilePlan, given: GivenLayout | None = None) -> OutputEntry | None:
        """Return how the newest run that a plan reads wrote that output: format, partitions, schema.

        For an empty plan: how the newest run with data did. None where the upstream never wrote the output. `given` is
        what the script says of it.

        Raises:
            SourceError: the runs that a stored plan reads, or several of them together, were not written alike; or some
                were collected, and how they were written can't be told any more, nor is it `given`.
        """
        window = plan.edge
        if window is None:
            return None
        if self._planned is not None and self._planned[0] is window:
            return self._planned[1]
        return self._entry_of_stored(plan, window, given)

    def format_of(self, entry: OutputEntry) -> str:
        """Return the format in which an output of the upstream was written.

        Raises:
            SourceError: none is stored with it, as where a script has staged the output by itself.
        """
        written = entry.metadata.format
        if written is None:
            raise SourceError(
                f"job {self._consumer!r}: upstream {self._upstream!r} has stored no format with its output in "
                f"{entry.target}, so how to read it is not known. Nothing was read or changed: it does not count as "
                "consumed. Give .format(...) of its files."
            )
        return written

    def format_by_name(self, plan: FilePlan) -> str:
        """Return the format of files of which nothing is stored any more, as `entry_of` lets pass."""
        endings = {path.rpartition(".")[2] for path in plan.files.paths}
        return next(iter(endings & _SELF_DESCRIBING), "parquet")

    def _entry_of_stored(self, plan: FilePlan, window: UpstreamWindow, given: GivenLayout | None) -> OutputEntry | None:
        written = self._written_of(plan, window)
        broken = self._break(written)
        if broken is not None:
            raise SourceError(
                f"job {self._consumer!r} is to read again what it has read of upstream {self._upstream!r}, and "
                f"{broken[1]}. One frame can't read both. Nothing was read or changed. Read it in parts: a pause "
                "between runs of this job (from, to) that have read the one or the other."
            )
        lost = set(plan.files.paths).difference(*(each.paths for each in written))
        if lost:
            self._check_known(lost, plan.roots, written, given)
        if written or lost:
            return _newest(written) if written else None
        until = window.until if window.runs else self._upstream_head().data_run_number
        for run in self._store.runs(self._upstream, until=until, reverse=True):
            entry = next((e for name, e in run.outputs.items() if window.output in ("", name)), None)
            if run.state.is_committed and entry is not None and entry.schema is not None:
                return entry
        return None

    def _check_known(
        self, lost: Collection[str], roots: Sequence[str], written: Sequence[_Written], given: GivenLayout | None
    ) -> None:
        """Make sure that files whose runs were collected are read rightly without what these runs had stored.

        Files of some formats say by themselves how they were written, unless a folder holds a column of theirs. Read
        with the options of another run, any other file may give other rows, without an error: then the script has to
        say all of it.
        """
        endings = {path.rpartition(".")[2] for path in lost}
        layouts = [_layout(each.entry) for each in written]
        below = (path.removeprefix(next(filter(path.startswith, roots), "")) for path in lost)
        is_plain = not any("=" in path.rpartition("/")[0] for path in below)
        is_alike = all({each["format"]} == endings and not each["partitionBy"] for each in layouts)
        if len(endings) == 1 and endings <= _SELF_DESCRIBING and is_plain and is_alike:
            return
        if is_plain and given is not None and given.covers(layouts):
            return
        is_collected = collected_until(self._store, self._upstream) > 0
        went = "were collected, and with them" if is_collected else "are not found, nor"
        by_hand = "ead these files with spark.read, with the format, options and partitions that they were written with"
        in_script = "Give .format(...), .schema(...) and each .option(...) that they were written with, or r"
        raise SourceError(
            f"job {self._consumer!r} is to read again what it has read of upstream {self._upstream!r}, and the runs "
            f"that wrote {len(lost)} of these files {went} how they were written, the first: {min(lost)!r}. Nothing "
            f"was read or changed. {in_script if is_plain else 'R'}{by_hand}."
        )

    def _written_of(self, plan: FilePlan, window: UpstreamWindow) -> list[_Written]:
        """Return the runs whose files a plan reads, oldest first; each run lists its files."""
        wanted, written = set(plan.files.paths), list[_Written]()
        for run in self._store.runs(self._upstream, until=window.until, reverse=True) if wanted else ():
            for name, entry in run.outputs.items():
                if window.output not in ("", name) or not run.state.is_committed or entry.publish is None:
                    continue
                paths = {path for _, path in decode_moves(self._store.blobs.get(entry.publish))} & wanted
                if paths:
                    written.append(_Written(run.key.number, entry, tuple(paths)))
                    wanted -= paths
            if not wanted:
                break
        return written[::-1]

    def advance(self, plan: FilePlan) -> Position | None:
        """Return the position after the window; also an empty window notes a new epoch. See `Source.advance`."""
        if self._before is None:
            raise MisuseError("advance() before plan(): an upstream source knows its window only after planning")
        return _advance(self._before, plan)

    def recheck(self, plan: FilePlan) -> Recheck:
        """Look at the files, and whether the planned runs are still what they were; see `Source.recheck`."""
        moved = self._moved(plan)
        if plan.is_empty or moved is not None:
            return Recheck(moved=moved)
        return recheck_files(open_one_filesystem(plan.roots), plan)

    def _moved(self, plan: FilePlan) -> str | None:
        window = plan.edge
        if window is None or not window.runs:
            return None
        planned = dict(window.runs)  # one that was collected since can't be compared: its files are looked at
        for run in self._store.runs(self._upstream, after=window.after, until=window.until):
            number, is_published = run.key.number, run.state is RunState.PUBLISHED
            if run.state.is_committed and number in planned and (run.revision != planned[number] or not is_published):
                return f"run {number} of upstream {self._upstream!r} was replayed"
        return None


def _newest(written: Sequence[_Written]) -> OutputEntry:
    """Return how the newest of these runs that has anything to read was written."""
    return next((each for each in reversed(written) if each.paths), written[-1]).entry


def _layout(entry: OutputEntry) -> Mapping[str, Any]:
    written = entry.metadata
    options = {key.lower(): value for key, value in written.options.items()}
    return {"format": written.format, "partitionBy": list(written.partition_by), "options": options}


def advance_upstream(plan: FilePlan, found: PlanInput) -> Position | None:
    """Return the position after a stored plan that started from `found`."""
    before = None if found.position is None else UpstreamPosition.decode(found.position)
    return _advance(before, plan)


def _advance(before: UpstreamPosition | None, plan: FilePlan) -> Position | None:
    window = plan.edge
    if window is None:
        raise MisuseError("the plan of an upstream context has no window")
    after = UpstreamPosition(window.job, window.output, window.until, window.epoch, window.changes)
    return None if after == before else Position(after.encode(), str(after.run_number))


def _amount(run: Run, output: str) -> RunSize:
    entry = run.outputs.get(output)
    written = OutputMetadata() if entry is None else entry.metadata
    return RunSize(
        files=written.files or 0,
        size_bytes=written.bytes or 0,
        rows=written.rows,
        committed_ms=None if run.committed_at is None else int(from_text(run.committed_at).timestamp() * 1000),
    )
