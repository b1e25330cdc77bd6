"""Bites in what is stored, and by which condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.lifecycle.history import timeline_switch as turn
from airflow_bookmarks.lifecycle.maintenance import blobs
from airflow_bookmarks.lifecycle.protocol import acquire as begin
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Check, Equals, Operation, Put, Update
from airflow_bookmarks.store.transitions import lease as lease_store
from airflow_bookmarks.store.transitions.base import LeaseGrant
from tests.chaos.bites.bite import bite, put, take
from tests.chaos.sim.table import FaultyTable


def rewrite(change: Callable[[list[Operation]], list[Operation]]) -> None:
    """Change each transaction on its way to the table."""
    transact = FaultyTable.transact

    def changed(self: FaultyTable, operations: Sequence[Operation], *, token: str | None = None) -> None:
        transact(self, change(list(operations)), token=token)

    put(FaultyTable, "transact", changed)


def _is_head(operation: Operation) -> bool:
    return operation.key.sk == "HEAD"


def _attributes(operation: Operation, prefix: str) -> dict[str, Any]:
    if not operation.key.sk.startswith(prefix):
        return {}
    if isinstance(operation, Update):
        return dict(operation.set)
    return dict(operation.attributes) if isinstance(operation, Put) else {}


def _without_fence(operation: Operation) -> Operation | None:
    kept = [c for c in operation.conditions if not (isinstance(c, Equals) and c.name == "fence")]
    if isinstance(operation, Check):
        return replace(operation, conditions=kept) if kept else None
    return replace(operation, conditions=kept)


@bite("a plan is stored before the first byte is read")
def plan_stored_after_read() -> None:
    plan, place = BookmarkStore.plan, BookmarkStore.place

    def later(self: Any, *given: Any, **named: Any) -> None:
        self.__dict__.setdefault("late_plans", []).append((given, named))

    def with_plans(self: Any, *given: Any, **named: Any) -> None:
        for plan_given, plan_named in self.__dict__.pop("late_plans", []):
            plan(self, *plan_given, **plan_named)
        place(self, *given, **named)

    put(BookmarkStore, "plan", later)
    put(BookmarkStore, "place", with_plans)


@bite("a run item is keyed by number and fence: attempts of one number don't share it")
def keyed_by_attempt() -> None:
    put(LeaseGrant, "key", property(lambda self: RunKey(self.run_number, self.identity.attempt)))


@bite("each write to a run item is a transaction that checks HEAD.fence")
def writes_not_fenced() -> None:
    def change(operations: list[Operation]) -> list[Operation]:
        if not any(_attributes(operation, "RUN#").get("state") == "PLANNED" for operation in operations):
            return operations
        kept = [_without_fence(operation) if _is_head(operation) else operation for operation in operations]
        return [operation for operation in kept if operation is not None]

    rewrite(change)


@bite("a commit checks HEAD.fence and HEAD.version")
def commit_not_fenced() -> None:
    def change(operations: list[Operation]) -> list[Operation]:
        if not any("run_number" in _attributes(operation, "HEAD") for operation in operations):
            return operations
        return [replace(o, conditions=()) if _is_head(o) and isinstance(o, Update) else o for o in operations]

    rewrite(change)


@bite("FAILED is open: it is settled like PLANNED")
def failed_not_settled() -> None:
    put(RunState, "is_open", property(lambda self: self is RunState.PLANNED))


@bite("an own mark is read back by the run item, and not by the lease, which success itself releases")
def mark_read_back_by_lease() -> None:
    def is_marked(self: Any, grant: LeaseGrant, run: Any, following: Any) -> bool:
        lease = self.head(grant.job).lease
        return lease is not None and lease.nonce == grant.nonce

    put(BookmarkStore, "_is_marked", is_marked)


@bite("an own commit whose reply was lost is read back before it is called a failure")
def commit_not_read_back() -> None:
    whole = BookmarkStore.commit

    def blind(self: Any, grant: LeaseGrant, commit: Any) -> Any:
        run = self.run
        self.run = lambda job, key: None
        try:
            return whole(self, grant, commit)
        finally:
            self.run = run

    put(BookmarkStore, "commit", blind)


@bite("what was seen of the job is still so when the lease is taken: also its version", theme="takeovers")
def take_of_a_stale_look() -> None:
    same_head = take(lease_store, "_same_head")
    names = {"fence", "lease_nonce", "lease_until"}

    def stale(head: Any) -> list[Any]:
        return [condition for condition in same_head(head) if getattr(condition, "name", "") in names]

    put(lease_store, "_same_head", stale)


@bite("a killed attempt can't begin any more")
def killed_attempt_begins() -> None:
    may_take = take(begin, "may_take")

    def lax(head: Any, execution: Any, run_id: str, attempt: int, now: Any) -> Any:
        forgetful = None if execution is None else replace(execution, killed_attempt=0)
        return may_take(head, forgetful, run_id, attempt, now)

    put(begin, "may_take", lax)


@bite("a kill fences only the attempt that it names")
def kill_fences_anybody() -> None:
    def change(operations: list[Operation]) -> list[Operation]:
        kills = [o for o in operations if "killed_at" in _attributes(o, "EXEC#")]
        if not kills or any(_is_head(operation) for operation in operations):
            return operations
        world = begin.__dict__["present_fence"]
        key = replace(kills[0].key, sk="HEAD")
        fence = world(key)
        return operations if fence is None else [*operations, Update(key, {"fence": fence + 1}, item.LEASE_ATTRIBUTES)]

    transact = FaultyTable.transact

    def changed(self: FaultyTable, operations: Sequence[Operation], *, token: str | None = None) -> None:
        begin.__dict__["present_fence"] = lambda key: self._table.get([key]).get(key, {}).get("fence")
        transact(self, change(list(operations)), token=token)

    put(FaultyTable, "transact", changed)


@bite("taking over what has landed is one transaction with giving the old item up", theme="sinks")
def adopt_in_two_steps() -> None:
    adopt = BookmarkStore.adopt

    def in_steps(self: Any, grant: LeaseGrant, run: Any) -> Any:
        self.abandon(grant, run)
        table = self.table

        class Second:
            def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
                table.transact([o for o in operations if not isinstance(o, Update)], token=token)

        self.table = Second()
        try:
            return adopt(self, grant, run)
        finally:
            self.table = table

    put(BookmarkStore, "adopt", in_steps)


@bite("an execution is finished by its last run, not by the first that it commits", theme="sinks")
def finished_by_first_commit() -> None:
    mark = BookmarkStore.mark

    def last(self: Any, grant: LeaseGrant, run: Any, **how: Any) -> Any:
        return mark(self, grant, replace(run, is_last=True), **how)

    put(BookmarkStore, "mark", last)


@bite("HEAD.published only grows: a replay of an older run leaves it where it is", theme="replays")
def published_goes_back() -> None:
    def change(operations: list[Operation]) -> list[Operation]:
        marked = [o for o in operations if _attributes(o, "RUN#").get("state") == "PUBLISHED"]
        if not marked:
            return operations
        number = int(marked[0].key.sk.split("#")[1])
        return [
            replace(o, set={**o.set, "published": number}) if _is_head(o) and isinstance(o, Update) else o
            for o in operations
        ]

    rewrite(change)


def _of_replay(operations: list[Operation], change: Callable[[Update], Update]) -> list[Operation]:
    if not any("revision" in _attributes(o, "RUN#") and "replayed_at" in _attributes(o, "RUN#") for o in operations):
        return operations
    return [change(o) if _is_head(o) and isinstance(o, Update) else o for o in operations]


@bite("the commit of a replay sets HEAD.publishing, so that recovery finds it", theme="replays")
def replay_not_named_as_due() -> None:
    def unnamed(head: Update) -> Update:
        return replace(head, set={name: value for name, value in head.set.items() if name != "publishing"})

    rewrite(lambda operations: _of_replay(operations, unnamed))


@bite("HEAD.changes grows with each replay, so that consumers look", theme="chain")
def changes_not_counted() -> None:
    def uncounted(head: Update) -> Update:
        return replace(head, set={name: value for name, value in head.set.items() if name != "changes"})

    rewrite(lambda operations: _of_replay(operations, uncounted))


@bite("a reset keeps a due replay publish; it is finished, though undone", theme="cleans")
def reset_forgets_due_replay() -> None:
    def still_due(history: Any, parent: int, kept: int) -> Any:
        due = history.head.publishing
        run = history.store.run(history.job, due) if due is not None else None
        if run is None:
            return None
        return run.key if history.after(parent, kept).has(run) else None

    put(turn, "_still_due", still_due)


@bite("a blob goes only when nothing refers to it, however old it is")
def blob_collected_by_age() -> None:
    put(blobs, "_named_blobs", lambda store, without: set())


@bite("after an undone run its number is never given to another")
def number_given_again() -> None:
    def change(operations: list[Operation]) -> list[Operation]:
        lines = [_attributes(o, "LINE#") for o in operations if o.key.sk.startswith("LINE#")]
        if not lines:
            return operations
        return [
            replace(o, set={**o.set, "run_number": lines[0]["kept"]}) if _is_head(o) and isinstance(o, Update) else o
            for o in operations
        ]

    rewrite(change)
