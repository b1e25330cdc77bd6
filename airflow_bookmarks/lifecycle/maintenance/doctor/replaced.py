"""Replaced: rows of living runs that are no longer in the target, because later living runs overwrote them.

What an output overwrites with each run, and a partition that was read whole, is as it should be and no finding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.count import MAYBE_PARTLY_READ, PARTLY_READ, runs_in_words, runs_named
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.protocol.staging import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey

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
        mode = output.facts.get("mode")
        if mode == Mode.OVERWRITE:
            self.partly.clear()
            self.gone |= {path: run for path, (run, was_appended) in gone.items() if was_appended}
        elif mode == Mode.OVERWRITE_PARTITIONS:
            told = {f"{target}/{folder}".rstrip("/") for folder in output.facts.get(PARTLY_READ, ())}
            for folder in {path.rpartition("/")[0] for path in gone}:
                self.partly.pop(folder, None)  # what was missing there has been written anew, or is missing again
                if folder in told:
                    self.partly[folder] = number
            if output.facts.get(MAYBE_PARTLY_READ):
                self.gone |= {path: run for path, (run, _) in gone.items()}
        was_appended = mode == Mode.APPEND
        for file in survey.published_of(output):
            self.there[file if isinstance(file, str) else file.path] = number, was_appended


def replaced_files(survey: Survey) -> Iterator[Finding]:
    """Find files of living runs that overwrites have replaced, where rows may be missing for it."""
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
