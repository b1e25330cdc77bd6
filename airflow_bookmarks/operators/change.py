"""Operators that change the position of a job: reset, rewind, set, set-state, undo. The rules are those of the command
line and the page, because it is the same code: `lifecycle.changes.change` makes the change,
`lifecycle.changes.approval` files the request.

A change is made once for a series of tries (`operators.changes.series`). A try that was taken for dead can change the
job only at the version that it saw, so two tries can't both succeed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator, BaseOperatorLink, Context, XComArg

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.cli.output.change_preview import in_lines
from airflow_bookmarks.cli.output.values import WARNING
from airflow_bookmarks.core.errors import (
    ApprovalError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobUnknownError,
    NameInvalidError,
    OptionError,
    ProtectedError,
    RunUnknownError,
)
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.job_state import SET_STATE, hidden, state_text
from airflow_bookmarks.core.rules.audit import ChangeAudit, check_reason
from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.lifecycle.changes.approval import request
from airflow_bookmarks.lifecycle.changes.change import Change, apply
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.changes.sharded_change import (
    change_shards,
    check_not_requested,
    preview_job,
    takes_shards,
)
from airflow_bookmarks.lifecycle.history.point import WATERMARK, resolve_point
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.operators.changes.arguments import given, names_of, time_of, version_of
from airflow_bookmarks.operators.changes.series import ChangeSeries, as_asked, change_of, request_of

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.sources.relocation import Unverified
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

Condition = Callable[[Context, dict[str, Any]], bool]
"""Says whether to change: gets Airflow's context and the preview, and returns True or False."""

# What a retry can't mend. A job that is held, or a store that does not answer, are left to Airflow's retries.
_FINAL = (
    ApprovalError,
    ChangeRefusedError,
    JobUnknownError,
    NameInvalidError,
    OptionError,
    ProtectedError,
    RunUnknownError,
)
_RACES = 5
_SHOWN_RUNS = 100  # of a preview: a job may have a hundred thousand, and an XCom is a row in Airflow's database


class BookmarkChangeOperator(BaseOperator):
    """Provide the arguments that all operators below share.

    Args:
        job: name of the job; a sharded job can only be reset or rewound. (templated)
        reason: why the change is made; recorded with the author and the time. (templated)
        force: make the change even while a run holds the job; that run is fenced. Default: the task fails, and its
            retry tries again.
        expected_version: refuse the change if the job has another version: a number, or a preview that contains it,
            e.g. `preview.output`. (templated)
        dry_run: change nothing and return the preview: what would be read again, which consumers are affected, and
            which rows would be duplicated.
        condition: called with Airflow's context and the preview; the change is made only if it returns True. Otherwise
            the task succeeds and returns `{"changed": False, ...}`, so that downstream tasks still run.
        request: if the job is protected, file a request and return its id; another person approves it. Default: the
            task fails.
        missing_ok: succeed without a change if the job has no bookmark, for a DAG that has not run yet.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.

    Returns:
        A plain dict. `changed` says whether the job was changed; `request` is the id of a request.

    Raises:
        AirflowFailException: a retry can't help: a wrong argument, an unknown job or run, an unexpected version, an
            impossible change, or a protected job.
        JobBusyError, StoreError: a retry may help.
    """

    shared_template_fields: ClassVar[tuple[str, ...]] = ("job", "reason", "expected_version")
    template_fields: Sequence[str] = shared_template_fields
    operator_extra_links: Collection[BaseOperatorLink] = (BookmarkLink(),)
    ui_color = "#e8f0e4"

    def __init__(
        self,
        *,
        job: str,
        reason: str,
        force: bool = False,
        expected_version: int | str | XComArg | Mapping[str, Any] | None = None,
        dry_run: bool = False,
        condition: Condition | None = None,
        request: bool = False,
        missing_ok: bool = False,
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.reason = reason
        self.force = force
        self.expected_version = expected_version
        self.is_dry_run = dry_run
        self.condition = condition
        self.request = request
        self.missing_ok = missing_ok
        self.bookmarks_conn_id = bookmarks_conn_id
        if condition is not None and not callable(condition):
            raise OptionError(
                f"condition={condition!r}: expected a function of (context, preview). Nothing was changed."
            )

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the requested change; `job` is the key of the job, `head` where it stands."""
        raise NotImplementedError

    def build_shards_change(self, job: str) -> Change:
        """Return the change that is asked for of a sharded job as a whole.

        Raises:
            OptionError: this change is of one bookmark.
        """
        raise OptionError(
            f"job {job!r} is sharded, and this change is of one bookmark. Nothing was changed. Name a virtual shard, "
            f"such as {shard_name(job, 0)!r}."
        )

    def execute(self, context: Context) -> dict[str, Any]:
        """Make the change, or say what it would do; see the class."""
        hook = BookmarkHook(self.bookmarks_conn_id)
        try:
            return self._execute(hook, context)
        except JobUnknownError as error:
            if not self.missing_ok:
                raise AirflowFailException(str(error)) from error
            log.info("bookmark: %s There is nothing to change.", error)
            return {"job": self.job, "changed": False}
        except ProtectedError as error:
            raise AirflowFailException(f"{error} From a DAG, request=True asks for it.") from error
        except _FINAL as error:
            raise AirflowFailException(str(error)) from error

    def _execute(self, hook: BookmarkHook, context: Context) -> dict[str, Any]:
        if not self.is_dry_run or self.reason is not None:  # what would refuse the change, refuses its preview
            check_reason("a change", given("reason", self.reason))
        store = hook.get_conn()
        job = key_of(store, check_name("job", self.job))
        if shards := shards_of(store, job):
            return self._execute_shards(hook, job, shards, context)
        head = store.head(job)
        if self.is_dry_run:
            return self._look(hook, job, self.build_change(store, job, head))
        expected = version_of(job, self.expected_version)
        series = ChangeSeries.of(context, self.retries or 0)
        races = 0
        while True:
            try:
                return self._once(hook, job, context, series, expected)
            except ChangedMeanwhileError as error:
                if expected is not None and store.head(job).version != expected:
                    raise AirflowFailException(str(error)) from error  # a version never comes back
                races += 1
                if races == _RACES:
                    raise

    def _execute_shards(self, hook: BookmarkHook, job: str, shards: Sequence[str], context: Context) -> dict[str, Any]:
        """Make the change in each virtual shard in which no try of this series has made it."""
        store, change = hook.get_conn(), self.build_shards_change(job)
        check_not_requested(job, self.request)
        # Read the shards before their events: an event that comes after that moves the version.
        seen = self._look(hook, job, change)
        if self.is_dry_run:
            return seen
        if self.condition is not None and not self._is_met(context, seen):
            log.info("bookmark %s: the condition does not hold; nothing is changed", job)
            return {"job": job, "change": change.kind, "changed": False, "preview": seen}
        series = ChangeSeries.of(context, self.retries or 0)
        done = [shard for shard in shards if change_of(store, shard, series) is not None]
        expected = version_of(job, self.expected_version)
        version = seen["version"] if expected is None else expected + len(done)
        terms = ChangeAudit(reason=self.reason, who=series.mark, force=self.force, expected_version=version)
        changed = change_shards(store, job, shards, change, done=done, **terms)
        return {**changed.as_dict(), "changed": True}

    def _once(
        self, hook: BookmarkHook, job: str, context: Context, series: ChangeSeries, expected: int | None
    ) -> dict[str, Any]:
        """Look once and change what was seen.

        Raises:
            ChangedMeanwhileError: the job moved in between.
        """
        store = hook.get_conn()
        # Read the head before the events: an event that comes after that moves the version, and the change is refused.
        head = store.head(job)
        made = change_of(store, job, series) or request_of(store, job, series, hides_state=hook.hides_state)
        if made is not None:
            return made
        change = self.build_change(store, job, head)
        seen = self._look(hook, job, change)
        if self.condition is not None and not self._is_met(context, seen):
            log.info("bookmark %s: the condition does not hold; nothing is changed", job)
            return {"job": job, "change": change.kind, "changed": False, "preview": seen}
        version = head.version if expected is None else expected
        if head.protected and self.request:
            return self._ask(hook, job, change, series, version)
        terms = ChangeAudit(reason=self.reason, who=series.mark, force=self.force, expected_version=version)
        return {**apply(store, job, change, **terms).as_dict(), "changed": True}

    def _look(self, hook: BookmarkHook, job: str, change: Change) -> dict[str, Any]:
        """Return what a change would do, and log it in the words of the command line."""
        store = hook.get_conn()
        is_sharded = takes_shards(store, job, change)
        told = (preview_job(store, job, change) if is_sharded else preview(store, job, change)).as_dict()
        seen = _shown(hidden(told) if hook.hides_state else told)
        for line in in_lines(store.namespace, seen, change):
            level = logging.WARNING if line.strip().startswith(WARNING) else logging.INFO
            log.log(level, "bookmark %s: %s", job, line.strip())
        return seen

    def _is_met(self, context: Context, seen: dict[str, Any]) -> bool:
        answer = None if self.condition is None else self.condition(context, dict(seen))
        if isinstance(answer, bool):
            return answer
        raise OptionError(
            f"job {self.job!r}: the condition returned {answer!r}, and True or False was expected. Nothing was changed."
        )

    def _ask(self, hook: BookmarkHook, job: str, change: Change, series: ChangeSeries, version: int) -> dict[str, Any]:
        """File a request for a change of a protected job, in the name that the worker's credentials have."""
        from airflow_bookmarks.lifecycle.changes.present_identity import present_identity

        store = hook.get_conn()
        who = present_identity(store, hook.credentials_environment())
        reason = f"{self.reason} [{series.mark}]"
        asked = request(store, job, change, reason=reason, who=who, expected_version=version)
        return as_asked(asked, hides_state=hook.hides_state)


class BookmarkResetOperator(BookmarkChangeOperator):
    """Take a job back to before its first run: its next enabled run reads everything. Written data stays.

    Besides the arguments of `BookmarkChangeOperator`:

    Args:
        contexts: only these contexts, without undoing a run; default: all. (templated)
        clean: also remove exactly what the undone runs published; the next run does it, and there is no undo.

    Example:
        BookmarkResetOperator(task_id="reset", job="flights.clean", reason="the delivery of May was wrong", clean=True)
    """

    template_fields: Sequence[str] = (*BookmarkChangeOperator.shared_template_fields, "contexts")

    def __init__(self, *, contexts: Sequence[str] | None = None, clean: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.contexts = contexts
        self.clean = clean

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the reset."""
        return self.build_shards_change(job)

    def build_shards_change(self, job: str) -> Change:
        """Return the reset, which is the same of a sharded job."""
        return Change("reset", contexts=names_of(self.contexts), clean=self.clean)


class BookmarkRewindOperator(BookmarkChangeOperator):
    """Take a job back to its state after an earlier run; give exactly one of `to_run`, `to_time`, `to_watermark`.

    Besides the arguments of `BookmarkChangeOperator`:

    Args:
        to_run: a run number or run id; for a sharded job, a run id. (templated)
        to_time: a time with a zone: the last run that had committed by then. (templated)
        to_watermark: the last run whose watermark is at or below this; for a job with several contexts
            `<context>=<value>`; not for a sharded job. (templated)
        contexts, clean: as for `BookmarkResetOperator`.

    Example:
        BookmarkRewindOperator(task_id="rewind", job="flights.clean", to_time="{{ data_interval_start }}", reason="...")
    """

    _points: ClassVar[tuple[str, ...]] = ("to_run", "to_time", "to_watermark")
    template_fields: Sequence[str] = (*BookmarkChangeOperator.shared_template_fields, *_points, "contexts")

    def __init__(
        self,
        *,
        to_run: int | str | None = None,
        to_time: datetime | str | None = None,
        to_watermark: int | str | None = None,
        contexts: Sequence[str] | None = None,
        clean: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.to_run = to_run
        self.to_time = to_time
        self.to_watermark = to_watermark
        self.contexts = contexts
        self.clean = clean
        points = [name for name in self._points if getattr(self, name) is not None]
        if len(points) != 1:
            raise OptionError(
                f"{' and '.join(points) or 'none of them'} given: a rewind takes exactly one of "
                f"{', '.join(self._points)}. Nothing was changed. Back to the beginning is a reset."
            )

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the rewind, to the run that the given point means now."""
        point = self._point()
        kept = resolve_point(store, job, head, point)
        if str(kept.key.number) != point:
            log.info("bookmark %s: %r is run %d (%s)", job, point, kept.key.number, kept.committed_at)
        return Change("rewind", to_run=str(kept.key.number), contexts=names_of(self.contexts), clean=self.clean)

    def build_shards_change(self, job: str) -> Change:
        """Return the rewind to a point, which is a run of its own in each shard."""
        return Change("rewind", to_run=self._point(), contexts=names_of(self.contexts), clean=self.clean)

    def _point(self) -> str:
        if self.to_run is not None:
            return given("to_run", self.to_run)
        if self.to_watermark is not None:
            return f"{WATERMARK}{given('to_watermark', self.to_watermark)}"
        return to_text(time_of(self.to_time))


class BookmarkSetOperator(BookmarkChangeOperator):
    """Set the position of one context of a job by hand.

    Besides the arguments of `BookmarkChangeOperator`:

    Args:
        ctx: the context. (templated)
        value: for files "now", a time with a zone, or "retry:<path>" or "retry:*" for quarantined files; for an
            upstream "now" or a run number (0: the beginning). (templated)

    Example:
        BookmarkSetOperator(task_id="skip", job="flights.clean", ctx="flights", value="now", reason="loaded by hand")
    """

    template_fields: Sequence[str] = (*BookmarkChangeOperator.shared_template_fields, "ctx", "value")

    def __init__(self, *, ctx: str, value: str | int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ctx = ctx
        self.value = value

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the set."""
        return Change("set", ctx=given("ctx", self.ctx), value=given("value", self.value))


class BookmarkSetStateOperator(BookmarkChangeOperator):
    """Set one value of `job.state`; no run is undone.

    Besides the arguments of `BookmarkChangeOperator`:

    Args:
        state: the name of the value. (templated)
        value: a JSON value of any type; None removes it. (templated: texts within it, which stay texts)

    Example:
        BookmarkSetStateOperator(task_id="back", job="api", state="cursor", value="{{ ds }}", reason="a bad delivery")
    """

    template_fields: Sequence[str] = (*BookmarkChangeOperator.shared_template_fields, "state", "value")

    def __init__(self, *, state: str, value: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.state = state
        self.value = value

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the change."""
        state = given("state", self.state)
        return Change(SET_STATE, state=state, value=state_text(state, self.value))


class BookmarkRelocateOperator(BookmarkChangeOperator):
    """Record that the files a context has read were moved to another folder; unchanged files count as read.

    Besides the arguments of `BookmarkChangeOperator`:

    Args:
        ctx: the context. (templated)
        from_root, to_root: the old and the new folder or prefix. (templated)
        unverified: how to count files that can't be compared with those read: "read" or "new". Default: the task
            fails.

    Example:
        BookmarkRelocateOperator(
            task_id="moved", job="flights.clean", ctx="flights", from_root="s3://old/raw", to_root="s3://lake/raw",
            reason="the bucket moved",
        )
    """

    template_fields: Sequence[str] = (*BookmarkChangeOperator.shared_template_fields, "ctx", "from_root", "to_root")

    def __init__(
        self, *, ctx: str, from_root: str, to_root: str, unverified: Unverified | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.ctx = ctx
        self.from_root = from_root
        self.to_root = to_root
        self.unverified = unverified

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the relocation."""
        return Change(
            "relocate",
            ctx=given("ctx", self.ctx),
            from_root=given("from_root", self.from_root),
            to_root=given("to_root", self.to_root),
            unverified=self.unverified,
        )


class BookmarkRenameContextOperator(BookmarkChangeOperator):
    """Move the position of a context to the name its script now uses.

    Besides the arguments of `BookmarkChangeOperator`:

    Args:
        ctx, to_ctx: the old and the new name. (templated)

    Example:
        BookmarkRenameContextOperator(task_id="name", job="clean", ctx="raw", to_ctx="flights", reason="a clearer name")
    """

    template_fields: Sequence[str] = (*BookmarkChangeOperator.shared_template_fields, "ctx", "to_ctx")

    def __init__(self, *, ctx: str, to_ctx: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ctx = ctx
        self.to_ctx = to_ctx

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the renaming."""
        return Change("rename-context", ctx=given("ctx", self.ctx), to_ctx=given("to_ctx", self.to_ctx))


class BookmarkUndoOperator(BookmarkChangeOperator):
    """Undo the last change of a job's position, or its deletion; takes the arguments of `BookmarkChangeOperator`.

    A second undo restores the change, so clearing this task does too, unless `expected_version` is given.

    Example:
        BookmarkUndoOperator(task_id="undo", job="flights.clean", reason="it was the delivery of June")
    """

    def build_change(self, store: BookmarkStore, job: str, head: Head) -> Change:
        """Return the undo."""
        return Change("undo")


def _shown(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return a preview that is small enough for an XCom: of the undone runs the first hundred."""
    if "by_shard" in seen:
        return {**seen, "by_shard": {shard: _shown(each) for shard, each in seen["by_shard"].items()}}
    return {**seen, "undone_runs": seen["undone_runs"][:_SHOWN_RUNS]}
