"""The hook: the bookmarks behind an Airflow connection."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Required, TypeAlias, TypedDict, Unpack

from airflow.sdk import get_current_context
from airflow.sdk.log import mask_secret

from airflow_bookmarks.airflow_compat import AirflowNotFoundException, BaseHook
from airflow_bookmarks.core.errors import BookmarkError, OptionError, StoreAccessError
from airflow_bookmarks.core.job import airflow_run_id
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.core.text.identity import Identity, Signature
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION, ConnectionFields
from airflow_bookmarks.hooks.database import AirflowAccess
from airflow_bookmarks.store.bookmark_store import open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boto3.session import Session

    from airflow_bookmarks.core.option import Settlement
    from airflow_bookmarks.core.rules.audit import ChangeAudit
    from airflow_bookmarks.lifecycle.backfill.plan import BackfillPlan
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.sources.relocation import Unverified
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.uri import StoreAddress

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]  # `list` is a method below

_CONN_TYPE = "bookmarks"
_UNUSED_FIELDS = ("host", "port", "schema", "login", "password")


class ChangeArguments(TypedDict, total=False):
    """Keyword arguments that every change of the hook takes.

    Args:
        reason: why the change is made; recorded with the author and the time. Required, and not empty.
        force: make the change even while a run holds the job; that run is fenced. Default: refused.
        expected_version: refuse the change if the job has another version than this, the previewed one. Default None:
            any.
        who: the author, recorded as named by a program; default: the calling task, else the user of the operating
            system.
    """

    reason: Required[str]
    force: bool
    expected_version: int | None
    who: str | None


class BackfillArguments(TypedDict, total=False):
    """Keyword arguments that say which jobs go back in a backfill, and how.

    Args:
        clean: also remove what the undone runs published, of all jobs; their next runs do it, and it can't be undone.
        downstream: take what reads the jobs along, at any distance. Default True.
        leave: readers that stay as they are, and with them what reads only those.
        keep: jobs whose output stays in spite of `clean`.
        force: take jobs back that a run holds; that run is fenced. Default: refused.
    """

    clean: bool
    downstream: bool
    leave: Collection[str]
    keep: Collection[str]
    force: bool


class BookmarkHook(BaseHook):
    """Inspect and change bookmarks, inside a task or outside.

    It returns plain dicts, which can be pushed to XCom. Watermarks are text.

    Args:
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`; its extra says where the store is.

    Raises:
        OptionError: at the first use, if the connection is missing or says something unknown or contradictory.

    Example:
        BookmarkHook().rewind("flights.clean", to_run=41, reason="carrier code was wrong in the delivery of 3 May")
    """

    conn_name_attr = "bookmarks_conn_id"
    default_conn_name = DEFAULT_CONNECTION
    conn_type = _CONN_TYPE
    hook_name = "Bookmarks"

    def __init__(self, bookmarks_conn_id: str = DEFAULT_CONNECTION) -> None:
        super().__init__()
        self.bookmarks_conn_id = bookmarks_conn_id

    # ---- what the connection says

    @cached_property
    def _fields(self) -> ConnectionFields:
        try:
            connection = self.get_connection(self.bookmarks_conn_id)
        except AirflowNotFoundException as error:
            raise OptionError(_missing(self.bookmarks_conn_id)) from error
        if connection.conn_type != _CONN_TYPE:
            raise OptionError(
                f"the connection {self.bookmarks_conn_id!r} is of type {connection.conn_type!r} and not {_CONN_TYPE!r}."
                " Nothing was read or changed. Name another one with bookmarks_conn_id."
            )
        misplaced = [name for name in _UNUSED_FIELDS if getattr(connection, name)]
        if misplaced:
            raise OptionError(
                f"the connection {self.bookmarks_conn_id!r} has a value in {', '.join(misplaced)}, which a store has "
                "no use for. Nothing was read or changed. Its extra fields say where the store is; credentials belong "
                "to the AWS connection that aws_conn_id names."
            )
        return ConnectionFields.of(self.bookmarks_conn_id, connection.extra_dejson)

    @cached_property
    def _session(self) -> Session | None:
        conn_id = self._fields.aws_conn_id
        if conn_id is None:
            return None
        # Imported where it is needed: the amazon provider takes a second.
        from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook

        try:
            # The amazon provider only warns about a missing connection, and goes on with other credentials.
            self.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise OptionError(
                f"the connection {self.bookmarks_conn_id!r} names the AWS connection {conn_id!r}, which does not exist."
                f" Nothing was read or changed. Create it (airflow connections add {conn_id} --conn-type aws ...), or "
                "leave aws_conn_id empty to take the credentials that boto3 finds."
            ) from error
        session: Session = AwsGenericHook(aws_conn_id=conn_id, client_type="dynamodb").get_session(self._fields.region)
        return session

    @cached_property
    def address(self) -> StoreAddress:
        """Where the store is, with the region that boto3 would take where the connection names none."""
        address = self._fields.address
        if address.scheme != "dynamodb" or address.region is not None:
            return address
        # Worker and driver must not each take the region of their own surroundings: that would be two tables.
        from boto3.session import Session

        session = self._session if self._session is not None else Session()
        return replace(address, region=session.region_name)

    @property
    def store_uri(self) -> str:
        """The store as one line of text, with region and namespace; it never holds a credential."""
        return str(self.address)

    @property
    def default_option(self) -> str | None:
        """The option of tasks that name none; None if the connection has none."""
        return self._fields.default_option

    @property
    def hides_state(self) -> bool:
        """Whether the connection hides the values of `job.state`."""
        return self._fields.hide_state == "true"

    def _shown(self, told: Row) -> Row:
        return hidden(told) if self.hides_state else told

    def open_store(self) -> BookmarkStore:
        """Open the store anew, with clients of its own."""
        store = open_store(self.store_uri, session=self._session)
        store.databases = AirflowAccess()
        return store

    @cached_property
    def _store(self) -> BookmarkStore:
        return self.open_store()

    def get_conn(self) -> BookmarkStore:
        """Return the store, opened at the first call."""
        return self._store

    def credentials_environment(self) -> dict[str, str]:
        """Return the credentials of the AWS connection as environment variables; empty if it names none.

        Those of an assumed role end with its session: a driver that works for longer needs an identity of its own.

        Raises:
            StoreAccessError: the AWS connection leads to no credentials.
        """
        if self._session is None:
            return {}
        found = self._session.get_credentials()
        if found is None:
            raise StoreAccessError(
                f"the AWS connection {self._fields.aws_conn_id!r} leads to no credentials. Nothing was read or "
                "changed. Give it a key, a role or a profile."
            )
        frozen = found.get_frozen_credentials()
        key, secret = frozen.access_key or "", frozen.secret_key or ""
        for covered in (secret, frozen.token):
            if covered:
                mask_secret(covered)
        return {
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            # Empty counts as none, and hides a token of the worker's own that does not go with this key.
            "AWS_SESSION_TOKEN": frozen.token or "",
        }

    def test_connection(self) -> tuple[bool, str]:
        """Say whether the store answers and its table is one of ours; for the button in Airflow's UI."""
        try:
            self.get_conn().check_layout()
            self.get_conn().blobs.objects()  # state_uri, if there is one, has to be within reach too
        except BookmarkError as error:
            return False, redacted(str(error))
        return True, f"{self.store_uri} answers, and its layout is known"

    # ---- reading

    def get(self, job: str) -> Row:
        """Return the state of a job: numbers, contexts with watermarks, `job.state`, lease, consumers.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.inspect.status import bookmark

        return self._shown(bookmark(*self._found(job)))

    def history(self, job: str, limit: int | None = None) -> Rows:
        """Return the committed runs of a job, oldest first; `limit`: only the newest.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.inspect.runs import history

        return history(*self._found(job), limit=limit)

    def list(self, *, with_shards: bool = False) -> Rows:
        """Return all jobs of the namespace, by name; a sharded one as one, or `with_shards` as its virtual shards.

        `lifecycle.inspect.sharded_list.grouped` describes the row of a sharded job.
        """
        from airflow_bookmarks.lifecycle.inspect.sharded_list import grouped
        from airflow_bookmarks.lifecycle.inspect.status import bookmarks

        rows = bookmarks(self.get_conn())
        return rows if with_shards else grouped(rows)

    def healths(self) -> Rows:
        """Return the health of all jobs of the namespace, the worst first; a sharded job is one.

        Each row has `job`, `health` ("DAMAGED": the job can't be read), `since` and `reason` as `airflow-bookmarks
        list` shows them, `rank`, `is_trouble`, and `lag_seconds`; `lifecycle.health.listed.JobHealth` describes them.
        """
        from airflow_bookmarks.lifecycle.health.listed import health_of_all

        return [each.as_dict() for each in health_of_all(self.get_conn())]

    def partitions(self, job: str) -> Rows:
        """Return a row for each part that runs of a job have read by itself, those that fail first.

        `lifecycle.inspect.partitions.by_partition` describes the rows.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.inspect.partitions import by_partition

        return by_partition(*self._found(job))

    def files(self, job: str, run: str | int) -> Rows:
        """Return the files that a run (a run number or run id) has read, by context.

        Raises:
            JobUnknownError, RunUnknownError: no such run in the living history.
        """
        from airflow_bookmarks.lifecycle.inspect.runs import files_of

        return files_of(*self._found(job), str(run))

    def pending(self, job: str, *, with_skipped: bool = False) -> Row:
        """Return what the next run of a job would read; `with_skipped` names the files left out.

        A job that has never run is no error: `is_known` is False then, and `unknown` says so.
        """
        from airflow_bookmarks.lifecycle.inspect.pending import pending

        return pending(*self._found(job)).as_dict(with_skipped=with_skipped)

    def lag(self, job: str | None = None) -> Rows:
        """Return how far a job is behind each source, with a state; None: all jobs, without listing folders.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.inspect.lag import lag, lags_of_all

        found = lags_of_all(self.get_conn()) if job is None else lag(*self._found(job))
        return [each.as_dict() for each in found]

    def advise(self, job: str | None = None) -> Rows:
        """Return what would make a job cheaper, each with its measured cost, as a row for the job; None: all jobs.

        Nothing is listed or asked: `lifecycle.maintenance.doctor.advice` reads what runs have recorded.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.maintenance.doctor import advise

        store, key = (self.get_conn(), None) if job is None else self._found(job)
        return [each.as_dict() for each in advise(store, jobs=None if key is None else [key])]

    def graph(self, job: str | None = None) -> Row:
        """Return which job reads what, as nodes and reads; with `job` what it depends on and what depends on it.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.inspect.graph import graph

        store, key = (self.get_conn(), None) if job is None else self._found(job)
        return graph(store, key).as_dict()

    def replay_settings(self, job: str, run_number: int) -> Row:
        """Return the settings for spark-submit that replay a run: same input, its output replaced.

        Raises:
            RunUnknownError, ChangeRefusedError: it can't be replayed.
        """
        from airflow_bookmarks.lifecycle.run.replay import replay_settings

        return replay_settings(*self._found(job), run_number)

    def export(self, jobs: Sequence[str] | None = None) -> Row:
        """Return the bookmarks of jobs (None: all of the namespace) as one document, for `airflow-bookmarks import`.

        It can be too large for XCom: write it to a file.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export

        return export(self.get_conn(), jobs, hide_state=self.hides_state)

    def _found(self, name: str) -> tuple[BookmarkStore, str]:
        """Return the store, and the key of the job that has this name."""
        from airflow_bookmarks.lifecycle.changes.naming import key_of

        store = self.get_conn()
        return store, key_of(store, name)

    # ---- changing: a job may be given by any of its names

    def preview(self, job: str, change: Change) -> Row:
        """Preview a change: what is read again, which consumers are affected, which rows would be duplicated."""
        from airflow_bookmarks.lifecycle.changes.sharded_change import preview_job

        return self._shown(preview_job(self.get_conn(), job, change).as_dict())

    def reset(
        self, job: str, *, clean: bool = False, contexts: Sequence[str] | None = None, **ask: Unpack[ChangeArguments]
    ) -> Row:
        """Take a job back to before its first run: the next enabled run reads everything. Written data stays.

        A sharded job is changed in each of its virtual shards, and its version is the sum of theirs.

        Args:
            clean: also remove exactly what the undone runs published; the next run does it. It can't be undone.
            contexts: only these contexts, without undoing a run; default: all.
            ask: see `ChangeArguments`.

        Raises:
            OptionError: no reason. JobUnknownError. JobBusyError: a run holds the job, and `force` is False.
            ChangedMeanwhileError: another version. ChangeRefusedError: it can't be cleaned.
            ProtectedError: it needs the approval of a second person. ShardsBusyError: runs hold virtual shards of it.
            ShardsLeftError: some shards were changed, and others refused; the same call again takes those.
        """
        from airflow_bookmarks.lifecycle.changes.change import Change
        from airflow_bookmarks.lifecycle.changes.sharded_change import change_job

        change = Change("reset", contexts=None if contexts is None else tuple(contexts), clean=clean)
        return change_job(self.get_conn(), job, change, **_terms(**ask)).as_dict()

    def rewind(
        self,
        job: str,
        *,
        to_run: str | int,
        clean: bool = False,
        contexts: Sequence[str] | None = None,
        **ask: Unpack[ChangeArguments],
    ) -> Row:
        """Take a job back to its state after an earlier run, given by run number or run id; see `reset` for the rest.

        A sharded job takes a run id or a time with a zone: its run numbers differ between shards.

        Raises:
            RunUnknownError: no such run in the living history. Besides those of `reset`.
        """
        from airflow_bookmarks.lifecycle.changes.change import Change
        from airflow_bookmarks.lifecycle.changes.sharded_change import change_job

        change = Change("rewind", str(to_run), None if contexts is None else tuple(contexts), clean=clean)
        return change_job(self.get_conn(), job, change, **_terms(**ask)).as_dict()

    def set_position(self, job: str, ctx: str, value: str | int, **ask: Unpack[ChangeArguments]) -> Row:
        """Set the position of one context by hand; see `reset` for the rest.

        Args:
            value: for files "now" or a time with a zone; for an upstream "now" or a run number (0: the beginning).
        """
        from airflow_bookmarks.lifecycle.changes.change import set_position

        return set_position(self.get_conn(), job, ctx, value, **_terms(**ask)).as_dict()

    def set_state(self, job: str, state: str, value: Any, **ask: Unpack[ChangeArguments]) -> Row:
        """Set one value of `job.state`, as a script would; see `reset` for the rest. No run is undone.

        Args:
            state: the name of the value.
            value: a JSON value; None removes it.
        """
        from airflow_bookmarks.lifecycle.changes.change import set_state

        return set_state(self.get_conn(), job, state, value, **_terms(**ask)).as_dict()

    def rename_context(self, job: str, ctx: str, to_ctx: str, **ask: Unpack[ChangeArguments]) -> Row:
        """Move the position of a context to the name its script now uses; see `reset` for the rest."""
        from airflow_bookmarks.lifecycle.changes.change import rename_context

        return rename_context(self.get_conn(), job, ctx, to_ctx, **_terms(**ask)).as_dict()

    def relocate(
        self,
        job: str,
        ctx: str,
        *,
        from_root: str,
        to_root: str,
        unverified: Unverified | None = None,
        **ask: Unpack[ChangeArguments],
    ) -> Row:
        """Record that the files a context has read were moved to another folder; see `reset` for the rest.

        Args:
            from_root, to_root: the old and the new folder or prefix.
            unverified: how to count files that can't be compared with those read: "read" or "new". Default: an error.
        """
        from airflow_bookmarks.lifecycle.changes.change import relocate

        store = self.get_conn()
        return relocate(store, job, ctx, from_root, to_root, unverified=unverified, **_terms(**ask)).as_dict()

    def undo(self, job: str, **ask: Unpack[ChangeArguments]) -> Row:
        """Undo the last change of a job's position; see `reset` for the rest.

        Raises:
            ChangeRefusedError: there is none, or it was made with clean.
        """
        from airflow_bookmarks.lifecycle.changes.change import undo

        return undo(self.get_conn(), job, **_terms(**ask)).as_dict()

    def plan_backfill(
        self,
        *jobs: str,
        to: str | None = None,
        cost_per_hour: float | None = None,
        **how: Unpack[BackfillArguments],
    ) -> Row:
        """Return the plan that takes jobs back with everything downstream of them, in order; nothing is changed.

        Args:
            jobs: by any of their names.
            to: the last run to keep: a run number, a run id, a time or `watermark:VALUE`; None: back to before the
                first run.
            cost_per_hour: what an hour of a run costs: the plan has the `cost` of the runs after it.
            how: see `BackfillArguments`.

        Raises:
            JobUnknownError, RunUnknownError, OptionError: there is no such job, or it has no such point.
            ChangeRefusedError: jobs read each other in a circle.
        """
        return self._plan(jobs, to, **how).as_dict(cost_per_hour=cost_per_hour, shown=self._shown)

    def backfill(
        self,
        *jobs: str,
        to: str | None = None,
        reason: str,
        who: str | None = None,
        expected_versions: Mapping[str, int] | None = None,
        **how: Unpack[BackfillArguments],
    ) -> Row:
        """Take jobs back with everything downstream of them, each by its own transaction; see `plan_backfill`.

        Args:
            jobs, to, how: as there.
            reason: why, for the audit event of each job.
            who: who asks for it; default: the task.
            expected_versions: of the jobs in the plan that was looked at; None: as they are now.

        Raises:
            ChangeRefusedError: a job can't go back; nothing was changed. ChangedMeanwhileError: a job has another
                version, or others would go back; nothing was changed. BackfillStoppedError: some went back, and
                another was refused meanwhile.
        """
        from airflow_bookmarks.lifecycle.backfill.carry_out import carry_out

        plan = self._plan(jobs, to, **how)
        plan.check_versions(expected_versions)
        return carry_out(self.get_conn(), plan, reason=reason, who=who or _who()).as_dict()

    def _plan(
        self,
        jobs: Sequence[str],
        to: str | None,
        *,
        clean: bool = False,
        downstream: bool = True,
        leave: Collection[str] = (),
        keep: Collection[str] = (),
        force: bool = False,
    ) -> BackfillPlan:
        """Return the plan of a backfill; see `BackfillArguments`. By names, so that a misspelt one is an error."""
        from airflow_bookmarks.lifecycle.backfill.plan import plan_backfill, roots_at

        store = self.get_conn()
        roots = roots_at(store, jobs, to, clean=clean)
        return plan_backfill(store, roots, downstream=downstream, leave=leave, keep=keep, force=force)

    def delete(self, job: str, *, typed_name: str, clean: bool = False, **ask: Unpack[ChangeArguments]) -> Row:
        """Delete the bookmark of a job: its next run reads everything; see `reset` for the rest.

        Args:
            typed_name: the name of the job again, as a confirmation.

        Raises:
            OptionError: another name. StoreAccessError: this role may not delete. Besides those of `reset`.
        """
        from airflow_bookmarks.lifecycle.changes.naming import delete

        return delete(self.get_conn(), job, typed_name=typed_name, clean=clean, **_terms(**ask)).as_dict()

    def unlock(self, job: str, *, reason: str, who: str | None = None) -> Row:
        """Release the lease of a driver that is known to be dead; the driver is fenced."""
        from airflow_bookmarks.lifecycle.changes.change import unlock

        return unlock(self.get_conn(), job, reason=reason, who=who or _who())

    def settle(
        self,
        job: str,
        number: int,
        settled_as: Settlement,
        *,
        reason: str,
        who: str | None = None,
    ) -> Row:
        """Say what a run counts as that has landed in some of its tables only; the next run acts on it.

        Raises:
            ChangeRefusedError: no run of that number waits for it. OptionError: no reason. JobBusyError: a run holds
                the job. ChangedMeanwhileError.
        """
        from airflow_bookmarks.lifecycle.changes.settle import settle

        return settle(self.get_conn(), job, number, settled_as, reason=reason, who=who or _who())

    def rename(self, job: str, new_name: str, *, reason: str, who: str | None = None) -> Row:
        """Give a job another name; the old one keeps working.

        Raises:
            NameTakenError, NameInvalidError: it can't have that name. OptionError: no reason. JobUnknownError.
        """
        from airflow_bookmarks.lifecycle.changes.naming import rename

        return rename(self.get_conn(), job, new_name, reason=reason, who=who or _who())

    def adopt(self, job: str, from_job: str, *, reason: str, who: str | None = None) -> Row:
        """Let a job without runs (a renamed DAG or task) continue with the bookmark of its old name.

        Raises:
            NameTakenError: `job` has a bookmark of its own. Besides those of `rename`.
        """
        from airflow_bookmarks.lifecycle.changes.naming import adopt

        return adopt(self.get_conn(), job, from_job, reason=reason, who=who or _who())

    # ---- whose it is

    def share(self, job: str, dag: str, *, reason: str, who: str | None = None) -> Row:
        """Let another DAG run a job too.

        Raises:
            ProtectedError: it needs the approval of a second person. ChangeRefusedError: no DAG owns the job, or this
                one runs it already. OptionError: no reason. JobUnknownError.
        """
        from airflow_bookmarks.lifecycle.changes.sharing import share

        return share(self.get_conn(), job, dag, reason=reason, who=who or _who())

    def unshare(self, job: str, dag: str, *, reason: str, who: str | None = None) -> Row:
        """Stop sharing a job with a DAG; raises the errors of `share`."""
        from airflow_bookmarks.lifecycle.changes.sharing import unshare

        return unshare(self.get_conn(), job, dag, reason=reason, who=who or _who())

    def hand_over(self, job: str, dag: str, *, reason: str, renamed: bool = False, who: str | None = None) -> Row:
        """Give a job to another DAG; `renamed`: to its owner under a new name.

        Raises:
            JobBusyError: a run holds the job. Besides those of `share`.
        """
        from airflow_bookmarks.lifecycle.changes.sharing import hand_over

        return hand_over(self.get_conn(), job, dag, reason=reason, renamed=renamed, who=who or _who())

    # ---- protection: the requester and the approver are determined by authentication, not by an argument

    def protect(self, job: str, *, reason: str, who: str | None = None) -> Row:
        """Require a second person's approval for changes of a job. Runs are not affected.

        Raises:
            OptionError: no reason. JobUnknownError. ChangeRefusedError: it is protected already.
        """
        from airflow_bookmarks.lifecycle.changes.approval import protect

        return protect(self.get_conn(), job, reason=reason, who=Identity(who or _who(), False, "airflow"))

    def request(self, job: str, change: Change, *, reason: str, expected_version: int | None = None) -> Row:
        """Request a change of a protected job; the approver names the `id` of the result.

        Raises:
            ApprovalError: nobody vouches for the identity of this process. ChangeRefusedError: the job is not
                protected, or the change can't be made. OptionError: no reason. JobUnknownError, ChangedMeanwhileError.
        """
        from airflow_bookmarks.lifecycle.changes.approval import request

        who = self._identity()
        asked = request(self.get_conn(), job, change, reason=reason, who=who, expected_version=expected_version)
        return self._shown(asked.as_dict())

    def requests(self, job: str, *, with_closed: bool = False) -> Rows:
        """Return the open requests of a job, oldest first; `with_closed`: also those that are closed.

        Raises:
            JobUnknownError: no such bookmark.
        """
        from airflow_bookmarks.lifecycle.changes.approval import requests

        return [self._shown(asked.as_dict()) for asked in requests(self.get_conn(), job, with_closed=with_closed)]

    def approve(self, job: str, request_id: str, *, force: bool = False) -> Row:
        """Approve a change that another person requested, and make it; `force`: even while a run holds the job.

        Raises:
            RequestUnknownError. ApprovalError: not by this identity, or it is void, expired, rejected or done.
            JobBusyError, ChangeRefusedError: it can't be made now; it stays approved.
        """
        from airflow_bookmarks.lifecycle.changes.approval import approve

        return approve(self.get_conn(), job, request_id, who=self._identity(), force=force)

    def reject(self, job: str, request_id: str, *, reason: str) -> Row:
        """Turn down a requested change.

        Raises:
            RequestUnknownError. OptionError: no reason. ApprovalError: it is decided, void or expired already.
        """
        from airflow_bookmarks.lifecycle.changes.approval import reject

        turned_down = reject(self.get_conn(), job, request_id, reason=reason, who=self._identity())
        return self._shown(turned_down.as_dict())

    def _identity(self) -> Identity:
        """Return whom the credentials of the connection name; without any, the user of the operating system."""
        from airflow_bookmarks.lifecycle.changes.present_identity import present_identity

        return present_identity(self.get_conn(), self.credentials_environment())


def _terms(
    *, reason: str, force: bool = False, expected_version: int | None = None, who: str | None = None
) -> ChangeAudit:
    """Return the arguments as the terms of a change, signed by the caller of the hook.

    By names, so that a misspelt one is an error, and nobody names a request for a change of his own.
    """
    return {"reason": reason, "force": force, "expected_version": expected_version, "who": who or _who()}


def _missing(conn_id: str) -> str:
    extra = '{"store": "dynamodb://bookmarks?region=eu-west-1"}'
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    return (
        f"there is no Airflow connection {conn_id!r}. Nothing was read or changed. Create it in the UI (type "
        f"Bookmarks), or by: airflow connections add {conn_id} --conn-type {_CONN_TYPE} --conn-extra '{extra}' , or by "
        f'the environment of all components: {variable}=\'{{"conn_type": "{_CONN_TYPE}", "extra": {extra}}}\''
    )


def _who() -> Signature:
    try:
        ti = get_current_context()["ti"]
    except RuntimeError:  # not inside a task
        from airflow_bookmarks.lifecycle.changes.present_identity import os_identity

        return os_identity().signature
    task = airflow_run_id(ti.dag_id, ti.run_id, ti.task_id, -1 if ti.map_index is None else ti.map_index)
    return Signature(task, "task")
