"""Check new names: refuse one that may look like an existing one, or that the store's `names` does not allow."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.script import check_new_name, why_not_new

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

_RECENT = 100  # runs


def check_job_name(store: BookmarkStore, job: str, head: Head | None) -> None:
    """Check the name of a job that is about to be taken, and that of the namespace with its first job.

    Raises:
        NameInvalidError: the job is new, and its name may look like another one, or is not in ASCII and has to be.
    """
    ascii_only = store.ascii_names
    why = why_not_new(job, ascii_only=ascii_only)
    if head is None:
        check_new_name("job", job, ascii_only=ascii_only)
        odd = why_not_new(store.namespace, ascii_only=ascii_only) is not None
        if odd and next(iter(store.jobs()), None) is None:
            check_new_name("namespace", store.namespace, ascii_only=ascii_only)
    elif why is not None:
        _warn("job", job, job, why)


def check_part_name(store: BookmarkStore, job: str, kind: str, name: str, head: Head) -> None:
    """Check the name of a context or output of a run; names in recent runs are known.

    Raises:
        NameInvalidError: it is new, and may look like another one, or is not in ASCII and has to be.
    """
    why = why_not_new(name, ascii_only=store.ascii_names)
    if why is None:
        return
    recent = islice(store.runs(job, reverse=True), _RECENT)
    if name not in head.contexts and not any(name in run.plans or name in run.outputs for run in recent):
        check_new_name(kind, name, ascii_only=store.ascii_names)
    _warn(kind, job, name, why)


def _warn(kind: str, job: str, name: str, why: str) -> None:
    log.warning(
        "bookmark %s: the %s %r (%s) would be refused if it were new: %s. It goes on; rename it in its own time",
        job,
        kind,
        name,
        ascii(name),
        why,
    )
