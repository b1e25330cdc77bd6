"""A visit: one request with its user, its job, and the time that is left for it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

import anyio.to_thread
from fastapi import Depends, Path, Request

from airflow_bookmarks.core.errors import (
    BookmarkError,
    JobUnknownError,
    LookRefusedError,
    StateCorruptError,
    TooLargeHereError,
)
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.rules.owner import owners_in
from airflow_bookmarks.core.rules.shard import sharded_name
from airflow_bookmarks.core.text.stored_json import JSON_BOUND, JsonBound, parsing_at_most
from airflow_bookmarks.files.permission import looking_below
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.plugin.auth import LoggedIn, Person, Rights, UserScope
from airflow_bookmarks.plugin.bulkhead import PATIENCE_S, Bulkhead
from airflow_bookmarks.plugin.connection import Opened
from airflow_bookmarks.plugin.exception_handlers import LOGGED, ForbiddenError
from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs
from airflow_bookmarks.plugin.presenters.sharded_job import find_sharded
from airflow_bookmarks.plugin.redaction import text_with_names_hidden
from airflow_bookmarks.plugin.scan.child import LIMITS, Limits, is_allowed, look_below, run_in_child
from airflow_bookmarks.plugin.scan.task import TASKS
from airflow_bookmarks.store.transitions.naming import DELETED_VERSION, resolve_name

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_ALL_JOBS = 4  # times as long as for one
ALL_SHARDS = 4
_CHILD = 4  # times as long as for what takes no look at files

TaskRunner = Callable[..., Any]  # a task: its name, the job, and its arguments by name


@dataclass(frozen=True)
class Backstage:
    """What all requests share: the connection, the gates to blocking calls, and recently read data."""

    opened: Opened = field(default_factory=Opened)
    store: Bulkhead = field(default_factory=lambda: Bulkhead("state store"))
    # Listing a folder may take long where nothing is wrong, and should not keep others from the store. Each of these
    # threads waits for a child that does it.
    folders: Bulkhead = field(default_factory=lambda: Bulkhead("listing of folders", threads=2))
    # As may looking at the head of each job; one at a time, because those who come meanwhile find what it has found.
    all_jobs: Bulkhead = field(default_factory=lambda: Bulkhead("state of all jobs", threads=1))
    jobs: AllJobs = field(default_factory=AllJobs)
    patience_s: float = PATIENCE_S

    limits: Limits = LIMITS  # of each child that looks at files
    bound: JsonBound = JSON_BOUND  # of what is parsed at a time in this process, whose other threads wait for it

    def close(self) -> None:
        """End the threads."""
        self.store.close()
        self.folders.close()
        self.all_jobs.close()
        self.jobs.close()


@dataclass(frozen=True, slots=True)
class Owned:
    """A job, by its key, with the DAG and task that its record names, and every DAG that owns or owned it.

    `rights` has such owners for each bookmark that it consists of. `shards` are the virtual shards of a sharded one.
    """

    key: str
    dag_id: str | None
    task_id: str | None
    rights: Rights = ((),)
    shards: tuple[str, ...] = ()

    @property
    def owners(self) -> tuple[str, ...]:
        """Every DAG that owns or owned it, or one of its shards."""
        return tuple(dict.fromkeys(dag_id for owners in self.rights for dag_id in owners or ()))


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request."""

    person: Person
    backstage: Backstage
    deadline: float
    asked_for: list[str] = field(default_factory=list)  # the bookmarks that the request is about, once they are found

    async def store(self, call: Callable[[BookmarkHook], _T], *, times: int = 1) -> _T:
        """Call the store, within the time that is left; `times` as long for requests about many bookmarks."""
        return await self._through(self.backstage.store, call, more_s=(times - 1) * self.backstage.patience_s)

    async def with_files(
        self, call: Callable[[BookmarkHook, TaskRunner], _T], *, is_change: bool = False, times: int = 1
    ) -> _T:
        """Do a task that may read files: here without reading any, then in a child, if the deployment allows that.

        A child is also used if more is stored than this process unpacks at a time.

        Args:
            call: is given the hook, and what does a task; it is called again for the child.
            is_change: what was done here is done, and not done again for what it did not see.
            times: how much longer it may take here than what is about one bookmark.

        Raises:
            LookRefusedError: it takes a look that is not allowed. LookFailedError: the child had no answer.
        """
        refused: list[str] = []

        def here(hook: BookmarkHook) -> _T:
            with looking_below() as permission:
                try:
                    return call(hook, partial(run_here, hook))
                finally:
                    refused.extend(permission.refused)

        prefixes = look_below()
        try:
            answer = await self.store(here, times=times)
        except LookRefusedError:
            if not is_allowed(prefixes, refused):
                raise
        except TooLargeHereError as error:
            log.info("bookmarks page: another process is asked, since %s", error)
        else:
            if is_change or not is_allowed(prefixes, refused):
                return answer
        return await self.in_child(call, prefixes=prefixes, times=times)

    async def in_child(
        self, call: Callable[[BookmarkHook, TaskRunner], _T], *, prefixes: Sequence[str] = (), times: int = 1
    ) -> _T:
        """Do a task in a child, whose time, memory and answer are limited; it reads files below these prefixes alone.

        Raises:
            LookFailedError: the child had no answer.
        """
        limits = self.backstage.limits
        return await self._through(
            self.backstage.folders,
            lambda hook: call(hook, partial(_run_child, hook, prefixes, limits)),
            more_s=(max(_CHILD, times) - 1) * self.backstage.patience_s,
        )

    async def all_jobs(self, call: Callable[[BookmarkHook], _T]) -> _T:
        """Ask the store for the heads of all jobs: some seconds where nothing is wrong, so for longer than the rest."""
        return await self._through(self.backstage.all_jobs, call, more_s=(_ALL_JOBS - 1) * self.backstage.patience_s)

    async def airflow(self, call: Callable[[], _T]) -> _T:
        """Ask Airflow's own database, as Airflow's own routes do: in its threads."""
        return await anyio.to_thread.run_sync(call)

    async def readable(self, name: str) -> Owned:
        """Return the job with a bookmark of its own that has this name, which the user may look at.

        Raises:
            JobUnknownError: it is sharded; the message says so. Otherwise as `readable_job`.
        """
        return _with_bookmark(await self.readable_job(name))

    async def readable_job(self, name: str) -> Owned:
        """Return the job, sharded or not, that has this name, which the user may look at: all of it.

        A job that they may not look at is answered like a missing one, so that requests don't reveal which jobs exist.

        Raises:
            JobUnknownError: there is none that they may look at. NameInvalidError: there can't be one.
        """
        check_name("job", name)
        try:
            job = await self.store(lambda hook: owned(hook, name))
        except StateCorruptError:
            # Whose it is can't be read.
            if await self.airflow(self.person.may_read_unknown):
                raise
            job = None
        if job is None or not await self.airflow(lambda: self.person.may_read_each(job.rights)):
            raise JobUnknownError(
                f"no bookmark named {name!r} that {self.person.name!r} may look at. Nothing was read or changed."
            )
        self.asked_for.extend(job.shards or (job.key,))
        return job

    async def sharded_job_of(self, shard: str) -> str | None:
        """Return the sharded job that a job is a virtual shard of; None if there is none that the user may see."""
        whole = sharded_name(shard)
        job = None if whole is None else await self.store(lambda hook: find_sharded(hook.get_conn(), whole))
        if whole is None or job is None or shard not in job.shards:
            return None
        return whole if await self.airflow(lambda: self.person.may_read_each(job.rights)) else None

    async def with_names_hidden(self, said: str) -> str:
        """Return the text of an error without the names of other jobs that the user may not look at."""
        if not self.asked_for:
            return said
        try:
            scope = await self.scope()
            times = ALL_SHARDS if len(self.asked_for) > 1 else 1
            return await self.store(
                lambda hook: text_with_names_hidden(hook.get_conn(), scope, said, self.asked_for), times=times
            )
        except BookmarkError:
            first = self.asked_for[0]
            return f"job {first!r}: this can't be done. {LOGGED}"  # it may name any job

    async def changeable(self, name: str) -> Owned:
        """Return the job with a bookmark of its own that has this name, which the user may change.

        Raises:
            ForbiddenError: they may look at it alone; otherwise as `readable`.
        """
        return _with_bookmark(await self.changeable_job(name))

    async def changeable_job(self, name: str) -> Owned:
        """Return the job, sharded or not, that has this name, which the user may change: all of it.

        Raises:
            ForbiddenError: they may look at it alone; otherwise as `readable_job`.
        """
        job = await self.readable_job(name)
        if not await self.airflow(lambda: self.person.may_change_each(job.rights)):
            dags = " and ".join(map(repr, job.owners))
            whose = f"the runs of DAG {dags} (of all DAGs, where there is none of that name)" if dags else "assets"
            raise ForbiddenError(
                f"{self.person.name!r} may not change job {name!r}. Nothing was changed. It takes the permission to "
                f"edit {whose}."
            )
        return job

    async def scope(self) -> UserScope:
        """Return which jobs the user may look at."""
        return await self.airflow(self.person.scope)

    async def _through(self, bulkhead: Bulkhead, call: Callable[[BookmarkHook], _T], *, more_s: float = 0.0) -> _T:
        def watched() -> _T:
            # Files are no business of this process, wherever a call might come to them.
            with looking_below(), parsing_at_most(self.backstage.bound), self.backstage.opened.watch() as hook:
                return call(hook)

        left_s = max(0.0, self.deadline + more_s - asyncio.get_running_loop().time())
        return await bulkhead.run(watched, left_s)


def _with_bookmark(job: Owned) -> Owned:
    if job.shards:
        raise JobUnknownError(
            f"job {job.key!r} is sharded: it has no bookmark of its own but {len(job.shards)} of its virtual shards, "
            f"{job.shards[0]!r} to {job.shards[-1]!r}. Nothing was read or changed. Name one of these."
        )
    return job


def run_here(hook: BookmarkHook, what: str, job: str, **arguments: Any) -> Any:
    """Do a task in this process, which reads no file."""
    return TASKS[what](hook.get_conn(), job, **arguments)


def _run_child(
    hook: BookmarkHook, prefixes: Sequence[str], limits: Limits, what: str, job: str, **arguments: Any
) -> Any:
    return run_in_child(hook, prefixes, what, job, arguments, limits)


def owned(hook: BookmarkHook, name: str) -> Owned | None:
    """Return the job that has this name with the DAG of its record; None if there is no such job."""
    store = hook.get_conn()
    key = resolve_name(store, name)
    entry = store.index_entry(key)
    if entry is None or DELETED_VERSION in entry:
        sharded = find_sharded(store, key)
        if sharded is not None:
            return Owned(key, sharded.dag_id, sharded.task_id, sharded.rights, sharded.shards)
    if entry is None:
        head = store.snapshot(key).head
        if head is None:
            return None
        return Owned(key, head.owner, None, (owners_in({"dag_id": head.owner}),))
    return Owned(key, text(entry.get("dag_id")), text(entry.get("task_id")), (owners_in(entry),))


def text(value: object) -> str | None:
    """Return a value of an item if it is text, else None."""
    return value if isinstance(value, str) else None


async def _page_request(request: Request, person: LoggedIn) -> PageRequest:
    backstage: Backstage = request.app.state.backstage
    page_request = PageRequest(person, backstage, asyncio.get_running_loop().time() + backstage.patience_s)
    request.state.page_request = page_request
    return page_request


PageRequestDep = Annotated[PageRequest, Depends(_page_request)]
JobName = Annotated[str, Path(description="any name of the job", max_length=250)]
