"""Protection of jobs: a change of a protected job needs a second person, who sees its preview and approves it.

    protect -> each change of where it stands is refused, its deletion too, and unprotect
    request     a person asks for one of them; it is stored with its preview and the version that this was made against
    approve     another person approves it: the change is made by `change.apply`, under the rules of every change
    reject      or turns it down

A request becomes void when the version of the job moves, because its preview no longer holds. It expires after seven
days. An approved change that is then refused (the job is busy) stays approved: approve it again, or let it become void.

Both persons are authenticated by a third party that vouches for their names. `core.text.identity.may_be_one_person`
decides which names may belong to one person; two AWS roles, or an AWS role and a user of the page, can't be told from
two people.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    ApprovalError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    OptionError,
    ProtectedError,
    RequestUnknownError,
    StateCorruptError,
)
from airflow_bookmarks.core.rules.audit import check_reason, check_who
from airflow_bookmarks.core.text.escaping import escaped
from airflow_bookmarks.core.text.identity import Identity, Signature, signed
from airflow_bookmarks.core.text.instant import from_text, to_text
from airflow_bookmarks.lifecycle.changes.change import Change, apply, check_free
from airflow_bookmarks.lifecycle.changes.naming import key_of, make_deletion
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.changes.sharing import (
    OWNER_KINDS,
    Ownership,
    change_owner,
    check_ownership_change,
    ownership_of,
)
from airflow_bookmarks.lifecycle.changes.stored_change import (
    NOT_A_TURN,
    change_of,
    change_value,
    ownership_value,
    preview_of,
    stored_ownership,
)
from airflow_bookmarks.store.codec.attribute import Fields
from airflow_bookmarks.store.transitions import approval as transition
from airflow_bookmarks.store.transitions.naming import check_may_delete

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

ChangeRequest = Change
"""What is asked for: a change of the kinds below; "unprotect" and, of a whole job, "delete" take no more than that."""

KINDS = ("reset", "rewind", "set", "set-state", "relocate", "rename-context", "undo", "delete", "unprotect",
         "share", "hand-over")  # fmt: skip
EXPIRES_IN = timedelta(days=7)

OPEN, APPROVED, DONE, REJECTED, EXPIRED, VOID = "open", "approved", "done", "rejected", "expired", "void"

_RACES = 10
ASK_ANEW = (
    "Ask for the change anew; this request can be neither approved nor rejected. Whoever administers the state table "
    "can delete the item, and nothing else depends on it."
)
_SHOWN_RUNS = 100  # of a preview; a job may have a hundred thousand, and an item has 400 KB


@dataclass(frozen=True, slots=True)
class Request:
    """A requested change and what became of it.

    `state` is as of the moment when it was read: "open"; "approved" (and not carried out yet); "done"; "rejected";
    "expired"; "void". `version` is that of the job when `preview` (plain values, as `ChangePreview.as_dict` gives them)
    was made. `decided_by` is None before there is a decision. `ownership` is whose the job was when a share or
    hand-over was asked for: such a change moves no version.
    """

    id: str
    job: str
    change: ChangeRequest
    who: Identity
    why: str
    made_at: datetime
    valid_until: datetime
    version: int
    preview: Mapping[str, Any]
    state: str
    decided_by: Identity | None = None
    ownership: Ownership | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        change = {name: value for name, value in asdict(self.change).items() if value not in (None, False)}
        return {
            "id": self.id,
            "state": self.state,
            "job": self.job,
            "change": {name: list(value) if isinstance(value, tuple) else value for name, value in change.items()},
            "who": self.who.name,
            "why": self.why,
            "made_at": to_text(self.made_at),
            "valid_until": to_text(self.valid_until),
            "version": self.version,
            "preview": dict(self.preview),
            "decided_by": None if self.decided_by is None else self.decided_by.name,
        }


# ---- protect, and what it refuses


def protect(store: BookmarkStore, job: str, *, reason: str, who: Identity) -> dict[str, Any]:
    """Protect a job: every further change of where it stands needs the approval of a second person. Runs go on.

    Args:
        reason: why, for the audit event; required.
        who: who asks for it; need not be authenticated, since this takes no data at risk.

    Raises:
        OptionError: no reason. JobUnknownError. ChangeRefusedError: it is protected already. ChangedMeanwhileError.
    """
    job = key_of(store, job)
    check_reason("protect", reason)
    check_who(who.name)
    for _ in range(_RACES):
        head = store.head(job)
        if head.protected:
            raise ChangeRefusedError(f"job {job!r} is protected already. Nothing was changed.")
        if transition.protect(store, job, head, {"kind": "protect", **signed(who.signature), "why": reason}):
            return {"job": job, "change": "protect", "protected": True}
    raise ChangedMeanwhileError(f"job {job!r} kept changing while it was to be protected; it is not. Try again.")


def check_unprotected(job: str, head: Head, kind: str) -> None:
    """Refuse a change of a protected job that comes without an approval.

    Raises:
        ProtectedError: the job is protected.
    """
    if head.protected:
        raise ProtectedError(
            f"job {job!r} is protected: {kind!r} needs the approval of a second person. Nothing was changed. Ask for "
            "it by the same command with --request; another person approves it then."
        )


# ---- request


def request(
    store: BookmarkStore,
    job: str,
    change: ChangeRequest,
    *,
    reason: str,
    who: Identity,
    expected_version: int | None = None,
    expires_in: timedelta = EXPIRES_IN,
) -> Request:
    """Request a change of a protected job; return the request, whose id the approver names. Nothing else is changed.

    Args:
        change: what is asked for; `Change("unprotect")` takes the protection away.
        reason: why; required. The approver sees it.
        who: who asks; authenticated, so that nobody approves a request of his own.
        expected_version: refuse if the job has another version by now: the one that was previewed.
        expires_in: how long it can be approved.

    Raises:
        OptionError: no reason, or no such kind of change. JobUnknownError, ChangedMeanwhileError.
        ApprovalError: `who` is not authenticated. ChangeRefusedError: the job is not protected, or the change can't be
            done. RunUnknownError: of a rewind.
    """
    job = key_of(store, job)
    check_reason(f"a request to {change.kind}", reason)
    check_who(who.name)
    _check_kind(job, change)
    _check_authenticated(job, who, "ask for a change of a protected job")
    check_ownership_change(job, change)
    for _ in range(_RACES):
        head = store.head(job)
        if not head.protected:
            raise ChangeRefusedError(
                f"job {job!r} is not protected, so a {change.kind} needs no approval. Nothing was changed. Make it."
            )
        seen = {} if change.kind in NOT_A_TURN else _preview(store, job, change)
        whose = ownership_value(ownership_of(store, job, head)) if change.kind in OWNER_KINDS else {}
        if expected_version is not None and head.version != expected_version:
            raise ChangedMeanwhileError(
                f"job {job!r} is at version {head.version} and not {expected_version} any more. Nothing was asked for. "
                "Look again and decide anew."
            )
        event: AuditEvent = {"kind": "request", "who": who.name, "who_kind": who.kind, "why": reason}
        event |= {"change": change_value(change), "preview": {**seen, **whose}}
        event["valid_until"] = to_text(store.now() + expires_in)
        if seen.get("version", head.version) == head.version:
            request_id = transition.put_request(store, job, head, event)
            if request_id is not None:
                return find_request(store, job, request_id)
    raise ChangedMeanwhileError(f"job {job!r} kept changing while a request was made; there is none. Try again.")


def requests(store: BookmarkStore, job: str, *, with_closed: bool = False) -> list[Request]:
    """Return the requests of a job that wait for a decision, oldest first.

    Args:
        with_closed: also those that are done, rejected, expired or void.

    Raises:
        JobUnknownError: no such bookmark. StateCorruptError: one of them can't be read.
    """
    found, damaged = requests_or_damage(store, job, with_closed=with_closed)
    for error in damaged.values():
        raise error
    return found


def requests_or_damage(
    store: BookmarkStore, job: str, *, with_closed: bool = False
) -> tuple[list[Request], dict[str, StateCorruptError]]:
    """Return the requests of a job as `requests` does, and why others can't be read, by id.

    Raises:
        JobUnknownError: no such bookmark.
    """
    job = key_of(store, job)
    found, damaged = decoded_requests(job, transition.request_items(store, job), store.head(job), store.now())
    return [one for one in found if with_closed or one.state in (OPEN, APPROVED)], damaged


def decoded_requests(
    job: str, items: Mapping[str, AuditEvent], head: Head, now: datetime
) -> tuple[list[Request], dict[str, StateCorruptError]]:
    """Return the requests of a job by the items that hold them, oldest first, and why others can't be read, by id."""
    found: list[Request] = []
    damaged: dict[str, StateCorruptError] = {}
    for request_id, item in items.items():
        try:
            found.append(_request_of(job, request_id, item, head, now))
        except StateCorruptError as error:
            damaged[request_id] = error
    # Identifiers of one millisecond have no order.
    return sorted(found, key=lambda one: one.made_at), damaged


def find_request(store: BookmarkStore, job: str, request_id: str) -> Request:
    """Return one request.

    Raises:
        JobUnknownError: no such bookmark. RequestUnknownError: the id names no request of it.
    """
    job = key_of(store, job)
    head, item = store.head(job), transition.request_item(store, job, request_id)
    if item is None:
        raise RequestUnknownError(
            f"job {job!r} has no request {request_id!r}. Nothing was changed. 'airflow-bookmarks requests {job}' lists "
            "those that wait."
        )
    return _request_of(job, request_id, item, head, store.now())


# ---- decide


def approve(store: BookmarkStore, job: str, request_id: str, *, who: Identity, force: bool = False) -> dict[str, Any]:
    """Approve a requested change and make it; return what it did, who asked and who approved.

    Args:
        who: who approves: authenticated, and another person than the one who asked.
        force: also under a lease: the run that holds it is fenced.

    Raises:
        RequestUnknownError. ApprovalError: not by this person, or it is void, expired, rejected or done.
        JobBusyError: a run holds the job; nothing was decided. ChangeRefusedError: the change can't be made now; it
            stays approved, and can be approved again, or rejected.
    """
    key = key_of(store, job)
    check_free(store, key, store.head(key), force)
    asked = _decide(store, key, request_id, who, APPROVED)
    result = _carry_out(store, asked, who, force)
    return {**result, "request": asked.id, "requested_by": asked.who.name, "approved_by": who.name}


def reject(store: BookmarkStore, job: str, request_id: str, *, reason: str, who: Identity) -> Request:
    """Turn a request down. The person who asked may do that too, to take it back.

    Raises:
        RequestUnknownError. OptionError: no reason. ApprovalError: void, expired or decided already.
    """
    check_reason("reject", reason)
    return _decide(store, key_of(store, job), request_id, who, REJECTED, reason)


def _decide(store: BookmarkStore, job: str, request_id: str, who: Identity, decision: str, reason: str = "") -> Request:
    for _ in range(_RACES):
        asked, head = find_request(store, job, request_id), store.head(job)
        _check_authenticated(job, who, f"have request {request_id} {decision}")
        _check_open(asked, head, decision)
        if decision == APPROVED and asked.who.is_same(who):
            also = "" if who.name == asked.who.name else f", and {who.name!r} may be the same person"
            raise ApprovalError(
                f"job {job!r}: {asked.who.name!r} asked for request {request_id}{also}, so another person has to "
                "approve it. Nothing was changed. Sessions of one AWS role count as one person, whatever their names."
            )
        if asked.state == APPROVED == decision:
            return asked  # what was approved once is carried out now
        if head.version != asked.version:
            continue  # the job moved after the request was read, so the request is void
        if decision == APPROVED and asked.change.kind == "delete":
            check_may_delete(store, job)
        kind = "approve" if decision == APPROVED else "reject"
        event: AuditEvent = {"kind": kind, **signed(who.signature), "why": reason or asked.why, "request": request_id}
        by: AuditEvent = {"decided_by": who.name, "decided_by_kind": who.kind}
        before = APPROVED if asked.state == APPROVED else None
        if transition.decide(store, job, head, request_id, decision, by, event, before=before):
            return replace(asked, state=decision, decided_by=who)
    raise ChangedMeanwhileError(f"job {job!r} kept changing while request {request_id} was decided on. Try again.")


def _carry_out(store: BookmarkStore, asked: Request, who: Identity, force: bool) -> dict[str, Any]:
    job, change = asked.job, asked.change
    check_who(who.name)
    kinds = dict.fromkeys([asked.who.kind, who.kind])
    by = Signature(f"{asked.who.name}, approved by {who.name}", ", ".join(kinds))
    if change.kind == "unprotect":
        _unprotect(store, asked, by)
        return {"job": job, "change": "unprotect", "protected": False}
    if change.kind in OWNER_KINDS:
        version, seen = asked.version, asked.ownership
        return change_owner(
            store, job, change, reason=asked.why, who=by, version=version, request_id=asked.id, seen=seen
        )
    make = make_deletion if change.kind == "delete" else apply
    why = escaped(asked.why)  # an earlier version accepted any reason
    version, request_id = asked.version, asked.id
    changed = make(store, job, change, reason=why, who=by, force=force, expected_version=version, request_id=request_id)
    return changed.as_dict()


def _unprotect(store: BookmarkStore, asked: Request, by: str) -> None:
    job, head = asked.job, store.head(asked.job)
    if not head.protected:
        raise ApprovalError(f"job {job!r} is not protected any more. Nothing was changed; there is nothing to do.")
    waiting = requests(store, job)
    others = [one.id for one in waiting if one.change.kind == "unprotect" and one.id != asked.id]
    event: AuditEvent = {"kind": "unprotect", **signed(by), "why": asked.why, "request": asked.id}
    if head.version != asked.version or not transition.unprotect(store, job, head, asked.id, others, event):
        raise ChangedMeanwhileError(f"job {job!r} moved while its protection was taken away; it stays protected.")


# ---- what is refused


def _check_kind(job: str, change: ChangeRequest) -> None:
    if change.kind not in KINDS:
        raise OptionError(
            f"job {job!r}: {change.kind!r} is no change that needs an approval; there are {', '.join(KINDS)}. Nothing "
            "was changed."
        )


def _check_authenticated(job: str, who: Identity, what: str) -> None:
    if not who.is_authenticated:
        raise ApprovalError(
            f"job {job!r}: {who.name!r} is not an authenticated identity, and so can't {what}. Nothing was changed. "
            "With a store in DynamoDB, give AWS credentials for which 'aws sts get-caller-identity' answers."
        )


def _check_open(asked: Request, head: Head, decision: str) -> None:
    if asked.state in (OPEN, APPROVED):
        return
    moved = f"the job is at version {head.version}, and it was previewed at version {asked.version}"
    why = {
        VOID: f"is void: {moved if head.version != asked.version else 'the protection was taken away since'}",
        EXPIRED: f"expired at {to_text(asked.valid_until)}",
    }.get(asked.state, f"is {asked.state} already")
    raise ApprovalError(
        f"job {asked.job!r}: request {asked.id} {why}. Nothing was changed. If the change is still wanted, ask anew."
    )


# ---- as stored


def _preview(store: BookmarkStore, job: str, change: ChangeRequest) -> dict[str, Any]:
    seen = preview(store, job, change).as_dict()
    return {**seen, "undone_runs": seen["undone_runs"][:_SHOWN_RUNS]}


def _state(item: Mapping[str, Any], head: Head, now: datetime) -> str:
    if item.get("done"):
        return DONE
    if item.get("decision") == REJECTED:
        return REJECTED
    if item.get("void") or head.version != item["version_before"]:
        return VOID
    if now >= from_text(item["valid_until"]):
        return EXPIRED
    return APPROVED if item.get("decision") == APPROVED else OPEN


def _request_of(job: str, request_id: str, item: Mapping[str, Any], head: Head, now: datetime) -> Request:
    fields = Fields.of(f"EVENT {escaped(request_id)} (a request for a change of job {job!r})", ASK_ANEW, item)
    change, version = change_of(fields.map("change")), fields.number("version_before")
    by = None
    if "decision" in fields:
        by = Identity(fields.text("decided_by"), True, fields.text("decided_by_kind"))
    seen = fields.map("preview")
    return Request(
        id=request_id,
        job=job,
        change=change,
        who=Identity(fields.text("who"), True, fields.text("who_kind")),
        why=fields.text("why"),
        made_at=fields.moment("at"),
        valid_until=fields.moment("valid_until"),
        version=version,
        preview=preview_of(seen, change, version),
        state=_state(item, head, now),
        decided_by=by,
        ownership=stored_ownership(seen, change, version),
    )
