"""Detect a lost bookmark: a first run whose target holds files of runs that the store does not know.

Every published file carries the name of its run (`run-<number>.<fence>-...`). A store that was lost and made anew, or
another namespace, has none of these runs: starting from the beginning would write their rows again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceMissingError, UnknownRunsError
from airflow_bookmarks.core.rules.territory import STAGING_FOLDER
from airflow_bookmarks.core.run import Run, RunKey
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.real_path import real_path
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_PUBLISHED_NAME = re.compile(r"run-(\d+)\.(\d+)-.+")


def check_known_runs(store: BookmarkStore, job: str, output: str, target: str) -> None:
    """Make sure that a job's first run does not append to files of runs that the store does not know.

    It lists the target once in the life of a job; other jobs are read only if files of runs are there.

    Raises:
        UnknownRunsError: it does.
    """
    unknown = _unknown(store, target)
    if not unknown:
        return
    raise UnknownRunsError(
        f"job {job!r}, output {output!r}: this would be the first run of the job in namespace {store.namespace!r}, and "
        f"the target {target!r} holds {len(unknown)} file(s) of runs that no job of this store and namespace knows, "
        f"the first: {unknown[0]!r}. To begin at the beginning may write their rows again. Nothing was written or "
        "committed. Was the store lost, deleted or made anew, the job deleted, or is it another namespace? Then open "
        "the store that has the job, or restore or import it; or let the job begin where it stopped (start=<time>); or "
        "empty the target. Does another store write there on purpose? Then say so: job.write(df, name, "
        'on_unknown_runs="keep").'
    )


def _unknown(store: BookmarkStore, target: str) -> Sequence[str]:
    # List the files before reading the jobs, so that files published meanwhile are not among them.
    try:
        paths = open_filesystem(target).list(target, recursive=True).files.paths
    except SourceMissingError:
        return []
    matches = [(path, _PUBLISHED_NAME.fullmatch(path.rpartition("/")[2])) for path in paths]
    unknown = {path: RunKey(int(match[1]), int(match[2])) for path, match in matches if match}
    for job in _likeliest_first(store, target) if unknown else ():
        known, until = _runs_of(store, job, target)
        unknown = {
            path: key for path, key in unknown.items() if key not in known and not (known and key.number <= until)
        }
        if not unknown:
            break
    return list(unknown)


def _likeliest_first(store: BookmarkStore, target: str) -> list[str]:
    """Return the jobs of the namespace, first those that have staged in the target."""
    staging = f"{target}/{STAGING_FOLDER}/"
    names = [name for name, _ in store.jobs()]
    heads = store.heads_or_damage(names)
    roots = {name: getattr(heads.get(name), "staging", ()) for name in names}
    return sorted(names, key=lambda name: not any(root.startswith(staging) for root in roots[name]))


def _runs_of(store: BookmarkStore, job: str, target: str) -> tuple[set[RunKey], int]:
    """Return the numbers and fences under which a job has written to a target, and up to which run history is gone."""
    real = real_path(target)
    found: set[RunKey] = set()
    for key, run in store.runs_or_damage(job):
        # A run that can't be read may have written there: its damage is no lost bookmark of this job.
        if not isinstance(run, Run):
            found.add(key)
        elif any(_is_around(real_path(output.target), real) for output in run.outputs.values()):
            found |= {RunKey(key.number, fence) for fence in (key.fence, *run.fences)}
    return found, collected_until(store, job) if found else 0


def _is_around(written: str, target: str) -> bool:
    """Whether files written to one folder may lie in another: the same folder, one within it, or one around it."""
    return f"{written}/".startswith(f"{target}/") or f"{target}/".startswith(f"{written}/")
