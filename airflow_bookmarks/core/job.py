"""Names of jobs, contexts, outputs and namespaces, and the caller of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_bookmarks.core.errors import NameInvalidError
from airflow_bookmarks.core.text.escaping import is_obeyed

# Names become parts of keys ("#" separates there) and of staging paths ("/", "=", globs mean something there).
_NAME = re.compile(r"[\w~-][\w.~-]{0,249}")
_NAME_BYTES = 250  # a folder's name has 255 bytes at most
_MAX_RUN_ID_BYTES = 1000

DEFAULT_NAMESPACE = "default"


def check_name(kind: str, name: str) -> str:
    """Return `name` if it can be the name of a `kind` (job, context, output, namespace).

    Letters and digits of any script, `_`, `.`, `~` and `-`; not starting with a dot; 250 bytes of UTF-8 at most.

    Raises:
        NameInvalidError: otherwise.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name.encode()) > _NAME_BYTES:
        article = "an" if kind[0] in "aeiou" else "a"
        raise NameInvalidError(
            f"{name!r} can't be the name of {article} {kind}: letters, digits, '_', '.', '~' and '-' are allowed, 250 "
            "bytes at most, and no dot in front. Nothing was read or changed."
        )
    return name


def check_run_id(run_id: str) -> str:
    """Return `run_id` if it can be the id of an execution: 1 to 1000 bytes without `#` and what is not shown.

    Raises:
        NameInvalidError: otherwise.
    """
    is_text = isinstance(run_id, str) and run_id != "" and "#" not in run_id and not any(map(is_obeyed, run_id))
    if not is_text or len(run_id.encode(errors="surrogatepass")) > _MAX_RUN_ID_BYTES:
        raise NameInvalidError(
            f"{run_id!r} can't be a run id: 1 to 1000 bytes in UTF-8, no '#', no control or format characters. Nothing "
            "was read or changed."
        )
    return run_id


def may_be_kept(run_id: str) -> bool:
    r"""Whether a store may have an execution of that id, also by an earlier version: it has room in a key.

    Example:
        >>> may_be_kept("flights/manual/clean"), may_be_kept("ü" * 501), may_be_kept("\ud800")
        (True, False, False)
    """
    try:
        return len(run_id.encode()) <= _MAX_RUN_ID_BYTES
    except UnicodeEncodeError:
        return False


def airflow_job_name(dag_id: str, task_id: str, map_index: int = -1) -> str:
    """Return the default name of a job that an Airflow task runs.

    Example:
        >>> airflow_job_name("flights", "clean"), airflow_job_name("flights", "clean", 3)
        ('flights.clean', 'flights.clean.3')
    """
    name = f"{dag_id}.{task_id}"
    return name if map_index < 0 else f"{name}.{map_index}"


def airflow_run_id(dag_id: str, dag_run_id: str, task_id: str, map_index: int = -1) -> str:
    """Return the run id of an Airflow task: the same for each try of it."""
    run_id = f"{dag_id}/{dag_run_id}/{task_id}"
    return run_id if map_index < 0 else f"{run_id}/{map_index}"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """The caller of a run: the execution's run id, its attempt, and where it comes from.

    `dag_id`, `task_id`, `dag_run_id`, `logical_date`, `series` are None outside Airflow. `series` tells the tries of a
    task that are retries of each other from those before the task was cleared. `is_last` tells that the execution makes
    no further run after the next one (a job in batches makes several).
    """

    run_id: str
    attempt: int = 1
    dag_id: str | None = None
    task_id: str | None = None
    map_index: int = -1
    dag_run_id: str | None = None
    logical_date: str | None = None
    series: int | None = None
