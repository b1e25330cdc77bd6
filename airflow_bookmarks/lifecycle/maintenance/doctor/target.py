"""Check targets: published files against what is there, leftover staging, and paths that are not the job's own.

Counting rows would need an engine, so files and their sizes are checked one by one. Each run lists what it published
with sizes, and every published name carries its run. What an output overwrites with each run, and a partition that was
read whole, is no finding. Paths in state that the job may neither move nor delete are judged by their text alone,
without looking at a file.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, OutOfBoundsError, SinkUnknownError, SourceError
from airflow_bookmarks.core.files.file_list import decode_paths
from airflow_bookmarks.core.rules.territory import OutputBounds, Territory
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.core.selection.listing import FileInfo
from airflow_bookmarks.core.selection.partition import folders_above
from airflow_bookmarks.core.text.count import runs_in_words, runs_named
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.real_path import real_paths
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.history.timeline_switch import undone_before
from airflow_bookmarks.lifecycle.maintenance.blobs import ulid_time
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE_ALONE, Finding, Severity
from airflow_bookmarks.lifecycle.maintenance.doctor.head import unpublishable
from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
from airflow_bookmarks.lifecycle.protocol.cleanup import left_in_targets, prepare_clean
from airflow_bookmarks.sinks.clean import HEAD_CLEANING, CleanList
from airflow_bookmarks.sinks.files.changes import HEAD_STAGING
from airflow_bookmarks.sinks.registry import SINKS, folders_among
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.transitions.collection import copied_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.sinks.clean import CleanPart


_FOLDER = re.compile(r"(\d+)\.(\d+)")
_SIDE_NAME = re.compile(r"side-([0-9A-Z]{26})-.+")
_PUBLISHED_NAME = re.compile(r"run-(\d+)\.\d+-.+")


def examine_targets(survey: Survey) -> Iterator[Finding]:
    """Find published files that are gone, changed or of no run, and staging that is left over."""
    committed = [run for runs in survey.committed.values() for run in runs]
    replaced = {path for run in committed for output in run.outputs.values() for path in survey.deletes_of(output)}
    for run in survey.living():
        # Nothing is known of collected runs, including what later runs have replaced of them.
        if run.state is RunState.PUBLISHED and run.key.number > survey.collected:
            for name, output in run.outputs.items():
                yield from _published(survey, run, output, f"RUN {run.key}, output {name!r}", replaced)
    yield from replaced_files(survey)
    yield from _left_over(survey)
    yield from _foreign(survey, committed)
    for root, why in unreachable_staging(survey).items():
        what = f"the staging folder {root!r} is out of reach, so nobody can tell what is left in it: {why}"
        mend = "Make it reachable, or leave it: runs go on, unless a publish that was dropped has staged there."
        yield Finding("staging-unreachable", survey.job, Severity.WARNING, what, root, mend)
    for folder in orphaned_staging(survey):
        what = f"{folder!r} was staged under a fence that has passed; nothing of it is open or due"
        mend = "Remove the folder; the next run of the job would do so as well."
        yield Finding("staging-orphaned", survey.job, Severity.NOTICE, what, folder, mend, True)
    yield from _due(survey)


def _due(survey: Survey) -> Iterator[Finding]:
    """Find a due publish that can't be made any more."""
    key = None if survey.head is None else survey.head.publishing
    run = None if key is None else survey.runs.get(key)
    if run is None or run.state is not RunState.COMMITTED:
        return
    gone = unpublishable(survey, run)
    if not gone:
        return
    what = (
        f"run {run.key} is to be published, and {len(gone)} of the files that it staged are gone and not published "
        f"either, the first: {gone[0]!r}. Each further run of the job fails over it"
    )
    # A replay that is due stays due through a rewind without clean.
    mend = f"Put them back, or rewind the job{' with clean' if run.revision else ''} to before run {run.key.number}."
    yield Finding("publish-impossible", survey.job, Severity.ERROR, what, f"RUN {run.key}", mend)


# ---- what runs published


def _published(survey: Survey, run: Run, output: OutputEntry, where: str, replaced: set[str]) -> Iterator[Finding]:
    listed = survey.published_of(output)
    said = output.metadata.files
    if output.publish is not None and said is not None and said != len(listed):
        what = f"{where} says that it published {said} file(s), and its list has {len(listed)}"
        mend = "Restore the table from a backup, or rewind the job to before this run."
        yield Finding("published-count-differs", survey.job, Severity.ERROR, what, where, mend)
    files = [file for file in listed if _path(file) not in replaced]
    if not files:
        return
    found = open_filesystem(output.target).stat([_path(file) for file in files])
    pairs = list(zip(files, found, strict=True))
    gone = [_path(was) for was, now in pairs if now is None]
    gone = _not_replaced_by_sides(run, output, gone, replaced) if gone else []
    if gone:
        what = f"{len(gone)} file(s) that {where} published are gone, the first: {gone[0]!r}"
        mend = "Put them back, or rewind the job to before this run, so that it publishes them again."
        yield Finding("published-file-missing", survey.job, Severity.ERROR, what, where, mend)
    changed = [now.path for was, now in pairs if now is not None and _differs(was, now)]
    if changed:
        what = f"{len(changed)} file(s) that {where} published have another size now, the first: {changed[0]!r}"
        mend = "Somebody else wrote them: put them back, or rewind the job to before this run."
        yield Finding("published-file-changed", survey.job, Severity.ERROR, what, where, mend)


def _not_replaced_by_sides(run: Run, output: OutputEntry, gone: list[str], replaced: set[str]) -> list[str]:
    """Return the files that no later pause or disable run can have replaced: these overwrite too, and keep no list.

    Such a run leaves files of its own in the folders that it overwrites; or it overwrites all, and then nothing is left
    of this run and those before it.
    """
    present = _present(output.target)
    since = run.published_at or ""
    names = ((path, _SIDE_NAME.fullmatch(_name(path))) for path in (*present, *replaced))
    folders = {path.rpartition("/")[0] for path, match in names if match and _made_at(match[1]) > since}
    numbers = (_PUBLISHED_NAME.fullmatch(_name(path)) for path in present)
    if folders and not any(match and int(match[1]) <= run.key.number for match in numbers):
        return []
    # A partition is replaced with the folders below it.
    return [path for path in gone if folders.isdisjoint([*folders_above(path, output.target), output.target])]


def _present(target: str) -> Sequence[str]:
    try:
        return open_filesystem(target).list(target, recursive=True).files.paths
    except SourceError:
        return ()  # gone, or can't be listed: what is missing there is reported file by file


def _made_at(ulid: str) -> str:
    made = ulid_time(ulid)
    return "" if made is None else to_text(made)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _path(file: FileInfo | str) -> str:
    return file if isinstance(file, str) else file.path


def _differs(was: FileInfo | str, now: FileInfo) -> bool:
    # By size alone: a file that was moved between file systems has another time and etag.
    return isinstance(was, FileInfo) and was.size_bytes != now.size_bytes


def _left_over(survey: Survey) -> Iterator[Finding]:
    """Find what undone runs left in their targets because they were undone without a clean."""
    head = survey.head
    if head is None or head.cleaning is not None:
        return
    runs = undone_before(HistorySnapshot(survey.store, survey.job, head)).runs
    found = {run.key.number: left_in_targets(survey.store, survey.job, [run]) for run in runs}
    yield from _left_in_sinks(survey, [part for each in found.values() for part in each.parts])
    left = {number: each.files for number, each in found.items()}
    numbers = [str(number) for number, files in left.items() if files]
    if not numbers:
        return
    paths = [path for files in left.values() for path in files]
    what = (
        f"{len(paths)} file(s) of runs that were undone ({', '.join(numbers)}) still lie in a target, the first: "
        f"{paths[0]!r}. Where their input was read again and appended, its rows are there twice"
    )
    mend = "The next reset or rewind with --clean takes them too; or remove them by hand."
    yield Finding("undone-files-left", survey.job, Severity.WARNING, what, paths[0], mend)


def _left_in_sinks(survey: Survey, parts: Sequence[CleanPart]) -> Iterator[Finding]:
    """Find what undone runs left in sinks that are no files; of a sink that can't tell, `examine_kinds` says so."""
    by_output: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        by_output.setdefault((part.output, part.sink), []).append(str(part.run.number))
    for (name, sink), numbers in sorted(by_output.items()):
        what = (
            f"output {name!r} of runs that were undone ({', '.join(numbers)}) is still visible in its sink, of kind "
            f"{sink!r}. Where their input was read again and appended, its rows are there twice"
        )
        mend = "The next reset or rewind with --clean takes it too; or remove its rows by hand."
        yield Finding("undone-files-left", survey.job, Severity.WARNING, what, f"output {name!r}", mend)


# ---- what no run published


def _foreign(survey: Survey, committed: Sequence[Run]) -> Iterator[Finding]:
    """Find files under the name of a run that published no such file: rows that are there twice."""
    known = _listed(survey, committed)
    targets = sorted({output.target for run in committed for output in run.outputs.values() if output.publish})
    for target in targets:
        strange = [path for path in _named_by_runs(target, survey.collected) if path not in known]
        # Several jobs may share a target and use the same run numbers.
        strange = _of_nobody(survey, strange) if strange else []
        if strange:
            what = (
                f"{len(strange)} file(s) in {target!r} have the name of a run, and no run published them, the first: "
                f"{strange[0]!r}. Their rows are read by whoever reads the target"
            )
            mend = (
                "Find out who put them there (another store or namespace that writes to this target?), and move them."
            )
            yield Finding("file-foreign", survey.job, Severity.WARNING, what, strange[0], mend)


def _named_by_runs(target: str, collected: int) -> list[str]:
    matches = [(path, _PUBLISHED_NAME.fullmatch(_name(path))) for path in _present(target)]
    return [path for path, match in matches if match and int(match[1]) > collected]


def _listed(survey: Survey, committed: Sequence[Run]) -> set[str]:
    outputs = [output for run in committed for output in run.outputs.values()]
    published = {_path(file) for output in outputs for file in survey.published_of(output)}
    return published | {path for output in outputs for path in survey.deletes_of(output)}


def _of_nobody(survey: Survey, paths: Sequence[str]) -> list[str]:
    """Return the files that no other job published either, by whatever link its target is reached."""
    others = set(real_paths(_listed_by_others(survey)))
    return [path for path, real in zip(paths, real_paths(paths), strict=True) if real not in others]


def _listed_by_others(survey: Survey) -> set[str]:
    found: set[str] = set()
    for job, _ in survey.store.jobs():
        if job != survey.job:
            other = Survey.of(survey.store, job, survey.now)
            found |= _listed(other, [run for runs in other.committed.values() for run in runs])
    return found


# ---- staging


def orphaned_staging(survey: Survey) -> list[str]:
    """Return the folders in which finished runs staged; none while a run holds the job, or anything is due."""
    head = survey.head
    if head is None or survey.has_live_lease or head.publishing is not None or head.cleaning is not None:
        return []
    opened = [run for run in survey.runs.values() if run.state.is_open]
    needed = {output.place for run in opened for output in run.outputs.values()}
    # A failed replay has no item of its own; its execution names the run until another attempt has done it.
    replayed = {execution.replaying for execution in survey.executions.values()}
    orphaned: list[str] = []
    unreachable = unreachable_staging(survey)
    for root in (root for root in own_staging(survey) if root not in unreachable):
        for folder in open_filesystem(root).folders(root):
            path = f"{root}/{folder}"
            match = _FOLDER.fullmatch(folder)
            key = None if match is None else RunKey(int(match[1]), int(match[2]))
            if key is None or key.number in replayed or any(place.startswith(f"{path}/") for place in needed):
                continue
            if key.fence <= head.fence and is_over(survey, key):
                orphaned.append(path)
    return orphaned


def own_staging(survey: Survey) -> list[str]:
    """Return the staging folders on the head that are the job's own; sinks of other kinds alone can list theirs."""
    territory = Territory(survey.store.namespace, survey.job)
    own: list[str] = []
    for root in () if survey.head is None else folders_among(survey.head.staging):
        with suppress(OutOfBoundsError):
            territory.check_staging_root(HEAD_STAGING, root)
            own.append(root)
    return own


def foreign_staging(survey: Survey) -> list[str]:
    """Return the staging roots on the head that are none of the job's, by what their sinks say."""
    territory = Territory(survey.store.namespace, survey.job)
    listed = () if survey.head is None else survey.head.staging
    return [root for root in listed if SINKS.is_foreign(territory, root)]


def unreachable_staging(survey: Survey) -> dict[str, str]:
    """Return the staging roots of a job that can't be listed from here, with the reason for each."""
    found: dict[str, str] = {}
    for root in own_staging(survey):
        try:
            open_filesystem(root).folders(root)
        except (OptionError, SourceError, OSError) as error:
            found[root] = str(error)
    return found


def is_over(survey: Survey, key: RunKey) -> bool:
    """Whether nothing that a run item has staged is needed any more."""
    run = survey.runs.get(key)
    if run is None:
        return True
    # One that is committed and not due was undone; the next begin sweeps it, and until then an undo may bring it back.
    return run.state in (RunState.PUBLISHED, RunState.ABANDONED)


_SHOWN = 3  # folders that a finding names


@dataclass(slots=True)
class _Target:
    """What became of one target, run after run.

    `there` has the run, and whether it appended, of each file that lies there; `partly` the run that replaced a folder
    and had read a part of it only; `gone` the runs of replaced files of which nobody can tell whether they were needed.
    """

    there: dict[str, tuple[int, bool]] = field(default_factory=dict)
    partly: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)

    def note(self, survey: Survey, target: str, number: int, output: OutputEntry) -> None:
        """Note what a run has published there, and what it has replaced."""
        gone = {path: self.there.pop(path) for path in survey.deletes_of(output) if path in self.there}
        metadata = output.metadata
        mode = metadata.mode
        if mode == Mode.OVERWRITE:
            self.partly.clear()
            self.gone |= {path: run for path, (run, was_appended) in gone.items() if was_appended}
        elif mode == Mode.OVERWRITE_PARTITIONS:
            told = {f"{target}/{folder}".rstrip("/") for folder in metadata.partly_read}
            for folder in {path.rpartition("/")[0] for path in gone}:
                self.partly.pop(folder, None)  # what was missing there has been written anew, or is missing again
                if folder in told:
                    self.partly[folder] = number
            if metadata.maybe_partly_read:
                self.gone |= {path: run for path, (run, _) in gone.items()}
        was_appended = mode in (Mode.APPEND, Mode.PURGE)
        for file in survey.published_of(output):
            self.there[file if isinstance(file, str) else file.path] = number, was_appended


def replaced_files(survey: Survey) -> Iterator[Finding]:
    """Find files of living runs that overwrites have replaced, where rows may be missing as a result."""
    targets: dict[str, _Target] = {}
    for run in survey.living():
        if run.state is RunState.PUBLISHED and run.key.number > survey.collected:
            for output in run.outputs.values():
                targets.setdefault(output.target, _Target()).note(survey, output.target, run.key.number, output)
    for target, found in sorted(targets.items()):
        if found.partly:
            runs = runs_named(runs_in_words(sorted(set(found.partly.values()))))
            folders = sorted(found.partly)
            named = ", ".join(map(repr, folders[:_SHOWN]))
            what = (
                f"{runs} replaced {len(folders)} partition(s) of {target!r} of which a part only was read: "
                f"rows that earlier runs published there are gone. {named}"
            )
            mend = (
                "Read with reread='partition' from now on, and reset the job with clean; or touch one file of each of "
                "these partitions, so that the next run reads them whole."
            )
            yield Finding("partition-partly-replaced", survey.job, Severity.WARNING, what, target, mend)
        if found.gone:
            runs = runs_named(runs_in_words(sorted(set(found.gone.values()))))
            what = (
                f"{len(found.gone)} file(s) that {runs} published are no longer in {target!r}: later runs "
                "replaced them, and it can't be told whether these had read all of it again"
            )
            mend = "Compare the target with its input; where rows are missing, reset the job with clean. See reread=."
            yield Finding("published-file-replaced", survey.job, Severity.NOTICE, what, target, mend)


CODE = "path-foreign"


def examine_bounds(survey: Survey) -> Iterator[Finding]:
    """Find paths that the head and the runs name and the job may not touch; runs that came with a copy are exempt."""
    head, territory = survey.head, Territory(survey.store.namespace, survey.job)
    if head is None:
        return
    foreign = foreign_staging(survey)[:1]  # the repair of one takes all of them off the list
    for root in [*foreign, *(root for root in head.staging if not SINKS.is_foreign(territory, root))]:
        yield from _refused(survey, partial(SINKS.check_roots, territory, [root]))
    body = None if head.cleaning is None else survey.bytes_of(head.cleaning)
    if body is not None:
        yield from _refused(
            survey,
            lambda: prepare_clean(survey.store, survey.job, head.epoch, CleanList.decode(body)),
            HEAD_CLEANING,
        )
    copied = copied_until(survey.store, survey.job)
    for run in survey.runs.values():
        if run.state.is_committed and run.key.number > copied:
            for name in (name for name, output in run.outputs.items() if output.lies_in_files):
                yield from _refused(survey, partial(_check, survey, head, run, name))


def _check(survey: Survey, head: Head, run: Run, name: str) -> None:
    """Check what a run has published and replaced, and, if its publish is due, from where it moves files."""
    output = run.outputs[name]
    bounds = OutputBounds.of(Territory(survey.store.namespace, survey.job), run, name)
    for source, target in survey.moves_of(output):
        bounds.check_own(target)
        if run.key == head.publishing:
            bounds.check_move(source, target)
    body = None if output.delete is None else survey.bytes_of(output.delete)
    for path in [] if body is None else decode_paths(body):
        if run.key == head.publishing:
            bounds.check_delete(path)
        else:
            bounds.check_replaced(path)


def _refused(survey: Survey, check: Callable[[], object], where: str = HEAD_STAGING) -> Iterator[Finding]:
    """Yield a finding if a check refused something."""
    try:
        check()
    except OutOfBoundsError as error:
        what = f"{error.item} names {error.path!r}, which this job may neither move nor delete: {error.why}"
        is_root = error.item == HEAD_STAGING
        mend = "Take such folders off the list; no file is touched." if is_root else RESTORE_ALONE
        yield Finding(CODE, survey.job, Severity.ERROR, what, error.item, mend, is_root)
    except SinkUnknownError as error:
        mend = "Look again where the sink is known. No run of the job begins without it."
        yield Finding("kind-unknown", survey.job, Severity.WARNING, str(error), where, mend)
