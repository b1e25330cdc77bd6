"""Transitions of protection, and of requests for changes that a second person decides on.

    protect     HEAD protected | EVENT
    unprotect   HEAD protected gone | EVENT | EVENT of the request: carried out | EVENTs of others like it: void
    request     EVENT, which holds the change, its preview and the version that was previewed
    decide      EVENT of the request: approved or rejected, by whom | EVENT | check HEAD version
    carry out   (within the transaction of the change) EVENT of the request: carried out

A request is decided once: each decision proves that there was none before. What carries it out proves that it is
approved still, and was not carried out before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ApprovalError
from airflow_bookmarks.store.codec.item import EVENT_PREFIX
from airflow_bookmarks.store.table import Attributes, Check, Condition, Equals, Exists, Lacks, Operation, Put, Update
from airflow_bookmarks.store.transitions.base import stamped, transact_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.reader import StateReader
    from airflow_bookmarks.store.table import Key
    from airflow_bookmarks.store.transitions.base import Transitions

_APPROVED = "approved"


def protect(store: Transitions, job: str, head: Head, event: AuditEvent) -> bool:
    """Mark a job as protected; False if its version moved since `head`, or it is protected already."""
    keys = store.keys(job)
    trace = keys.event(store.new_id())
    conditions: list[Condition] = [Equals("version", head.version), Lacks("protected")]
    operations: list[Operation] = [
        Update(keys.head, set={"protected": True}, conditions=conditions),
        Put(trace, stamped(store, head, event)),
    ]
    return transact_once(store, trace, operations)


def unprotect(
    store: Transitions, job: str, head: Head, request_id: str, others: Sequence[str], event: AuditEvent
) -> bool:
    """Remove the protection of a job, for an approved request; False if the version moved since `head`.

    Args:
        others: ids of further requests to do that; they become void, so that none removes a later protection.
    """
    keys = store.keys(job)
    trace = keys.event(store.new_id())
    conditions: list[Condition] = [Equals("version", head.version), Equals("protected", True)]
    operations: list[Operation] = [
        Update(keys.head, remove=["protected"], conditions=conditions),
        *carried_out(store, job, request_id),
        *(Update(keys.event(other), set={"void": True}, conditions=[Exists()]) for other in others),
        Put(trace, stamped(store, head, event)),
    ]
    return transact_once(store, trace, operations)


def put_request(store: Transitions, job: str, head: Head, event: AuditEvent) -> str | None:
    """Store a request; return its id, None if the version moved since `head`."""
    keys = store.keys(job)
    request_id = store.new_id()
    trace = keys.event(request_id)
    operations: list[Operation] = [
        Check(keys.head, [Equals("version", head.version), Equals("protected", True)]),
        Put(trace, stamped(store, head, event)),
    ]
    return request_id if transact_once(store, trace, operations) else None


def decide(
    store: Transitions,
    job: str,
    head: Head,
    request_id: str,
    decision: str,
    who: Attributes,
    event: AuditEvent,
    *,
    before: str | None = None,
) -> bool:
    """Record the decision on a request; False if it was decided meanwhile, or the version moved since `head`.

    Args:
        before: the decision that stands, and is taken back; None: there is none.
        decision: "approved" or "rejected".
        who: attributes that name who decides, added to the request.
    """
    keys = store.keys(job)
    trace = keys.event(store.new_id())
    after = stamped(store, head, event)
    decided: Attributes = {"decision": decision, "decided_at": after["at"], **who}
    still: Condition = Lacks("decision") if before is None else Equals("decision", before)
    operations: list[Operation] = [
        Check(keys.head, [Equals("version", head.version)]),
        Update(keys.event(request_id), set=decided, conditions=[Exists(), Lacks("void"), Lacks("done"), still]),
        Put(trace, after),
    ]
    return transact_once(store, trace, operations)


def carried_out(store: StateReader, job: str, request_id: str | None) -> list[Operation]:
    """Return what the transaction of a requested change adds: the request is approved, and is carried out by it.

    Nothing where `request_id` is None, which stands for a change that nobody had to approve.
    """
    if request_id is None:
        return []
    return [Update(store.keys(job).event(request_id), set={"done": True}, conditions=_approved())]


def still_approved(store: StateReader, job: str, request_id: str | None) -> list[Operation]:
    """Return what a transaction adds that only prepares a requested change: the request is approved."""
    return [] if request_id is None else [Check(store.keys(job).event(request_id), _approved())]


def check_approved(store: StateReader, job: str, request_id: str) -> None:
    """Make sure that a request is approved, and was not carried out.

    Raises:
        ApprovalError: somebody has rejected it, or carried it out, since it was read.
    """
    found = request_item(store, job, request_id) or {}
    decision = str(found.get("decision", "not approved"))
    state = "done" if found.get("done") else "void" if found.get("void") else decision
    if state != _APPROVED:
        raise ApprovalError(
            f"job {job!r}: request {request_id} is {state} by now: somebody else has decided on it, or carried it out. "
            "Nothing was changed. If the change is still wanted, ask anew."
        )


def _approved() -> list[Condition]:
    return [Equals("decision", _APPROVED), Lacks("void"), Lacks("done")]


def request_items(store: StateReader, job: str) -> dict[str, Attributes]:
    """Return the events that are requests, by id, oldest first."""
    keys = store.keys(job)
    return requests_among(store.table.query(keys.partition, prefix=keys.event("").sk))


def requests_among(items: Iterable[tuple[Key, Attributes]]) -> dict[str, Attributes]:
    """Return those of some items of a job that are requests, by id."""
    return {
        key.sk.removeprefix(EVENT_PREFIX): item
        for key, item in items
        if key.sk.startswith(EVENT_PREFIX) and item.get("kind") == "request"
    }


def request_item(store: StateReader, job: str, request_id: str) -> Attributes | None:
    """Return one request; None if the id names none."""
    key = store.keys(job).event(request_id)
    found = store.table.get([key]).get(key)
    return found if found is not None and found.get("kind") == "request" else None
