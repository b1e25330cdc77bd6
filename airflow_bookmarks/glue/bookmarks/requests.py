"""`get_job_bookmark` and `reset_job_bookmark`, with the parameters and answers that Glue's API has.

from airflow_bookmarks.glue.bookmarks.requests import get_job_bookmark, reset_job_bookmark
"""

from __future__ import annotations

import json
import os
from typing import Any

from airflow_bookmarks.core.errors import JobUnknownError, OptionError, RunUnknownError
from airflow_bookmarks.glue.errors import EntityNotFoundError
from airflow_bookmarks.glue.names import name_of, text_of
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.changes.present_identity import present_identity
from airflow_bookmarks.lifecycle.maintenance.transfer.glue_entry import as_glue_entry
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store

STORE_VARIABLE = "AIRFLOW_BOOKMARKS_STORE"
RESET_REASON = "reset-job-bookmark of the Glue layer"

EntityNotFoundException = EntityNotFoundError  # by the name that Glue's API has for it


def get_job_bookmark(
    JobName: str, RunId: str | None = None, *, store: str | BookmarkStore | None = None
) -> dict[str, Any]:
    """Return the bookmark of a job, as `GetJobBookmark` does: `{"JobBookmarkEntry": {...}}`.

    `Run` is the number of the next run, `Attempt` counts from 0, and `JobBookmark` is JSON in a text, with the state of
    each context. What tells read files from unread ones is not among it: it is to look at, never to import.

    Args:
        JobName: the name given to `Job.init`.
        RunId: the bookmark as it was after this run; None: as it is now.
        store: an open store or its URI; default: that of the environment variable AIRFLOW_BOOKMARKS_STORE.

    Raises:
        EntityNotFoundError: no bookmark of that name, or no such run in its living history.
        OptionError: no store.

    Example:
        get_job_bookmark("nightly orders")["JobBookmarkEntry"]["Run"]
    """
    opened = opened_store(store)
    return {"JobBookmarkEntry": _entry(opened, JobName, RunId)}


def reset_job_bookmark(
    JobName: str,
    RunId: str | None = None,
    *,
    store: str | BookmarkStore | None = None,
    reason: str = RESET_REASON,
    who: str | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Reset the bookmark of a job, or rewind it to its state after a run; return it then, as `ResetJobBookmark` does.

    All contexts go back together. Targets stay as they are.

    Args:
        JobName, RunId, store: as in `get_job_bookmark`; without a RunId the next enabled run reads everything.
        reason: what the audit event of the job says.
        who: whose name it has; default: who works here, by AWS or by the operating system.
        force: also while a run holds the job, which then can't commit any more.

    Raises:
        EntityNotFoundError: as `get_job_bookmark`. JobBusyError: a run holds the job. ProtectedError: the job needs the
            approval of a second person. ChangeRefusedError: what undone runs have overwritten would count as made.

    Example:
        reset_job_bookmark("nightly orders", RunId="jr_0a02", reason="the delivery of May was wrong")
    """
    opened = opened_store(store)
    job = name_of("job", JobName)
    by = present_identity(opened).signature if who is None else who
    try:
        if RunId is None:
            reset(opened, job, reason=reason, who=by, force=force)
        else:
            rewind(opened, job, RunId, reason=reason, who=by, force=force)
    except (JobUnknownError, RunUnknownError) as error:
        raise _not_found(error) from error
    return {"JobBookmarkEntry": _entry(opened, JobName, None)}


def opened_store(store: str | BookmarkStore | None) -> BookmarkStore:
    """Return an open store: the given one, that of a URI, or that of the environment.

    Raises:
        OptionError: neither is given, or the URI is none.
    """
    if isinstance(store, BookmarkStore):
        return store
    uri = store or os.environ.get(STORE_VARIABLE)
    if not uri:
        raise OptionError(
            f"no store: give store=..., or set {STORE_VARIABLE}, e.g. 'dynamodb://bookmarks?region=eu-west-1'. Nothing "
            "was read or changed."
        )
    return open_store(uri)


def _entry(store: BookmarkStore, job_name: str, run_id: str | None) -> dict[str, Any]:
    try:
        entry = as_glue_entry(store, name_of("job", job_name), run_id)
    except (JobUnknownError, RunUnknownError) as error:
        raise _not_found(error) from error
    states = {text_of(ctx): state for ctx, state in json.loads(entry["JobBookmark"]).items()}
    return {**entry, "JobName": job_name, "JobBookmark": json.dumps(states, ensure_ascii=False)}


def _not_found(error: Exception) -> EntityNotFoundError:
    return EntityNotFoundError(f"EntityNotFoundException: {error}")
