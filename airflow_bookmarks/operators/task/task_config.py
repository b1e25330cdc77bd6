"""The bookmark arguments of a task and their checks: those without a template when the DAG file is parsed, the rest
before Spark starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import airflow_job_name, check_name
from airflow_bookmarks.core.option import Choice, Option
from airflow_bookmarks.core.rules.shard import ShardShare, shard_name
from airflow_bookmarks.core.rules.until import until_of
from airflow_bookmarks.core.settings import PREFIX, is_checked_elsewhere

OnConflict = Literal["fail", "wait"]
OnClear = Literal["replay", "skip", "fail"]
OnEmpty = Literal["succeed", "skip"]


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The bookmark arguments of a task. Templates are rendered by the time `resolve` is called."""

    job: Any = None
    option: Any = None
    from_run: Any = None
    to_run: Any = None
    upstream: Any = ()
    upstream_until: Any = None
    shard: Any = None
    manifest_uri: Any = None

    def check_literals(self) -> None:
        """Check what holds no template: an error in a DAG file shows when the file is read.

        Raises:
            OptionError, NameInvalidError: as `resolve` does.
        """
        if _is_literal(self.job) and _given(self.job) is not None:
            check_name("job", str(self.job))
        if _is_literal(self.shard) and _given(self.shard) is not None:
            ShardShare.of(self.shard)
        if isinstance(self.upstream, str):
            self._check_upstream()
        if isinstance(self.upstream, Sequence):
            for name in self.upstream:
                if _is_literal(name):
                    check_name("job", name)
        if all(_is_literal(value) for value in (self.option, self.from_run, self.to_run)):
            window = _given(self.from_run), _given(self.to_run)
            # Without an option the connection's default decides, which is not known yet: only half a window is wrong.
            fallback = Option.PAUSE if any(window) else Option.ENABLE
            Choice.of(_given(self.option) or fallback, *window)

    def resolve(self, default_job: str, connection_option: str | None, key_of: Callable[[str], str] = str) -> Resolved:
        """Return what is in force, with upstream jobs by their keys.

        Args:
            default_job: the name of the job where none is given.
            connection_option: the default of the connection, if it has one.
            key_of: returns the key of the job with a name, which a rename or adoption may have given. What an operator
                or sensor returned names the key.

        Raises:
            OptionError: unknown option, half a window, a window without pause, no share. NameInvalidError: a job's
                name.
        """
        option, source = _given(self.option), "of the task"
        if option is None:
            option, source = connection_option, "default of the connection"
        if option is None:
            option, source = Option.ENABLE.value, "default"
        choice = Choice.of(option, _given(self.from_run), _given(self.to_run))
        self._check_upstream()
        upstream = tuple(dict.fromkeys(key_of(check_name("job", name)) for name in self.upstream or ()))
        until = untils(self.upstream_until, key_of)
        undeclared = sorted(set(until) - set(upstream)) if upstream else []
        if undeclared:
            raise OptionError(
                f"bookmark_upstream_until is of {undeclared[0]!r}, which bookmark_upstream={list(self.upstream)} does "
                "not name. Nothing was read or changed."
            )
        job = check_name("job", _given(self.job) or default_job)
        return Resolved(job, choice, source, upstream, until, self._share(job), _given(self.manifest_uri))

    @property
    def is_sharded(self) -> bool:
        """Whether the task has a share of a job; False if its template rendered to nothing."""
        return _given(self.shard) is not None

    def job_of(self, dag_id: str, task_id: str, map_index: int = -1) -> str:
        """Return the name of the job of a task with these arguments, with a template as far as it is rendered.

        Mapped tasks with shares of one job have that job in common.
        """
        return _given(self.job) or airflow_job_name(dag_id, task_id, -1 if self.is_sharded else map_index)

    def bookmarks_of(self, job: str) -> list[str]:
        """Return the names of the bookmarks of a task with this job: that of the job, or those of its virtual shards.

        Raises:
            OptionError: the share is none.
        """
        share = self._share(job)
        return [job] if share is None else [shard_name(job, number) for number in share.numbers]

    def _check_upstream(self) -> None:
        names = self.upstream or ()
        # Text is a sequence too: it would be taken apart into jobs of one letter.
        if isinstance(names, str) or not isinstance(names, Sequence) or any(_given(name) is None for name in names):
            raise OptionError(
                f"bookmark_upstream={names!r}: expected a list of job names. Nothing was read or changed."
            )

    def _share(self, job: str) -> ShardShare | None:
        given = _given(self.shard)
        if given is None:
            return None
        shard_name(job, 0)  # the name has to have room for it
        return ShardShare.of(given)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The job, option and window in force, where the option comes from, the declared upstream jobs by their keys, up to
    which run some of them are to be read, which virtual shards the task works on (None: the job is not sharded), and
    where plans are written down (None: nowhere).
    """

    job: str
    choice: Choice
    option_source: str
    upstream: tuple[str, ...]
    until: Mapping[str, int] = field(default_factory=dict)
    share: ShardShare | None = None
    manifest_uri: str | None = None


def untils(given: Any, key_of: Callable[[str], str] = str) -> dict[str, int]:
    """Return up to which run each upstream is to be read: of what an operator or sensor returned, or a list of such.

    A template gives it as text: `{{ ti.xcom_pull("wait") | tojson }}`. None, or nothing, is no bound. `key_of` is as
    for `TaskConfig.resolve`.

    Raises:
        OptionError: it is something else, is of a sharded job, or says two things of one job.

    Example:
        >>> untils('[{"job": "flights.clean", "run_number": "7"}]')
        {'flights.clean': 7}
    """
    if given is None or given == "":
        return {}
    found: dict[str, int] = {}
    for summary in _summaries(given):
        if not isinstance(summary, Mapping) or not isinstance(summary.get("job"), str):
            raise _no_summary(given)
        job = check_name("job", summary["job"])
        if summary.get("run_number") is None and summary.get("option") == Option.ENABLE:
            if summary.get("epoch") is None:
                raise _of_shards(job)
            continue  # a sensor that was released because the upstream went back: there is no run yet to read up to
        number, key = until_of(summary, job), key_of(job)
        if found.setdefault(key, number) != number:
            raise OptionError(
                f"bookmark_upstream_until names runs {found[key]} and {number} of {job!r}. Nothing was read or changed."
            )
    return found


def _summaries(given: Any) -> Sequence[Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise _no_summary(given) from error
    if isinstance(given, Sequence) and not isinstance(given, str):  # that of a mapped task is no list
        return given
    return [] if given is None else [given]


def _of_shards(job: str) -> OptionError:
    """Refuse the sums over virtual shards, which name neither run nor epoch."""
    return OptionError(
        f"bookmark_upstream_until is of the sharded upstream {job!r}, whose shards have run numbers of their own, so "
        "there is no run to read up to. Nothing was read or changed. Leave it out: what is published by then is read."
    )


def _no_summary(given: Any) -> OptionError:
    return OptionError(
        f"bookmark_upstream_until={given!r}: expected what an operator or sensor returned, or a list of such: give its "
        "output, or a template that ends in '| tojson'. Nothing was read or changed."
    )


def _given(value: Any) -> str | None:
    """Return a value as text; None if it is empty or a template's rendering of None."""
    text = "" if value is None else str(value).strip()
    return None if text in ("", "None") else text


def _is_literal(value: Any) -> bool:
    if isinstance(value, str):
        return "{{" not in value and "{%" not in value
    return value is None or isinstance(value, int)


def check_arguments(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse arguments that resemble the bookmark's and are unknown, including those from `default_args`.

    Raises:
        OptionError: a misspelt argument, which would be dropped by Airflow or say something else than meant.
    """
    names = {*given, *(given.get("default_args") or {})}
    unknown = sorted(name for name in names if name.startswith("bookmark") and name not in known)
    if unknown:
        raise OptionError(
            f"unknown argument {unknown[0]!r}; those of the bookmark are {', '.join(sorted(known))}. Nothing was read "
            "or changed."
        )


def check_conf(conf: Any) -> None:
    """Make sure that the user's Spark conf leaves the settings of the bookmark to the operator.

    Raises:
        OptionError: it sets one, so that there would be two places that say it.
    """
    if not isinstance(conf, Mapping):
        return
    taken = sorted(str(key) for key in conf if str(key).startswith(PREFIX) and not is_checked_elsewhere(str(key)))
    if taken:
        raise OptionError(
            f"conf sets {taken[0]!r}, which the operator sets itself. Nothing was read or changed. Say it by an "
            "argument: bookmark_job, bookmark_option, bookmark_from, bookmark_to, bookmark_upstream, "
            "bookmark_on_conflict, bookmark_on_unused, bookmark_manifest_uri, or by the connection."
        )
