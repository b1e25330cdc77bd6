"""Changes of ownership: made by people, and kept as events with who and why.

share      the owner's job may be run by another DAG too
unshare    ends that
hand-over  it belongs to another DAG from now on; of those that owned it before, rights are asked as well
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    BookmarkError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobUnknownError,
    OptionError,
    ProtectedError,
    ShardsLeftError,
    StateCorruptError,
)
from airflow_bookmarks.core.rules.audit import check_reason, check_who
from airflow_bookmarks.core.rules.owner import DAG_ID, owners_after, owners_in
from airflow_bookmarks.core.text.escaping import check_typed_text
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.lifecycle.changes.change import Change, check_free
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.lifecycle.protocol.owner import owner_of
from airflow_bookmarks.store.transitions import ownership as transition
from airflow_bookmarks.store.transitions.naming import resolve_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

OWNER_KINDS = ("share", "hand-over")
"""The changes of an owner that a protected job takes with an approval alone; unshare takes only away."""

_RACES = 10
_MAX_DAG_ID = 250  # as in Airflow


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership of a job as last seen: the version of the job then, its owner, the DAGs that share it.

    For a sharded job, the version is the sum over its shards, and the owner is None where they have several.
    """

    version: int
    owner: str | None
    shared_with: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnerChangePreview:
    """What a share, unshare or hand-over would do.

    `owner` and `shared_with` are those afterwards. `asked_of` lists the DAGs on which the page asks for rights now, and
    `asked_of_after` those on which it would ask then. `shards` counts the virtual shards that would change (None: the
    job is whole). `is_protected`: it takes the approval of a second person.
    """

    job: str
    kind: str
    seen: Ownership
    owner: str | None
    shared_with: tuple[str, ...]
    asked_of: tuple[str, ...]
    asked_of_after: tuple[str, ...]
    shards: int | None
    is_protected: bool

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        told = asdict(self)
        lists = ("shared_with", "asked_of", "asked_of_after")
        return {
            **{name: list(value) if name in lists else value for name, value in told.items()},
            "seen": {**told["seen"], "shared_with": list(self.seen.shared_with)},
        }


def share(store: BookmarkStore, job: str, dag: str, *, reason: str, who: str) -> dict[str, Any]:
    """Share a job: let another DAG run it, beside its owner. A sharded job is shared in each of its virtual shards.

    Args:
        job: any of its names.
        dag: the id of the other DAG.
        reason, who: for the audit event.

    Raises:
        OptionError: no reason, or no DAG. JobUnknownError. ProtectedError: it needs an approval.
        ChangeRefusedError: no DAG owns the job, or this one runs it already. ChangedMeanwhileError.
    """
    return _change_each(store, job, Change("share", dag=dag), reason, who)


def unshare(store: BookmarkStore, job: str, dag: str, *, reason: str, who: str) -> dict[str, Any]:
    """Unshare a job: the other DAG may no longer run it. A run that has begun goes on.

    Raises:
        ChangeRefusedError: the job is not shared with it. Besides those of `share`.
    """
    return _change_each(store, job, Change("unshare", dag=dag), reason, who)


def hand_over(
    store: BookmarkStore, job: str, dag: str, *, reason: str, who: str, renamed: bool = False
) -> dict[str, Any]:
    """Hand a job over to another DAG. The page still asks for rights on the former owner.

    Args:
        job: any of its names.
        dag: the id of the DAG.
        renamed: it is the present owner under a new name: no rights are asked of the old name.
        reason, who: for the audit event.

    Raises:
        JobBusyError: a run holds the job. ChangeRefusedError: it belongs to that DAG. Besides those of `share`.
    """
    return _change_each(store, job, Change("hand-over", dag=dag, renamed=renamed), reason, who)


def preview_owner(store: BookmarkStore, job: str, shards: Sequence[str], change: Change) -> OwnerChangePreview:
    """Preview a share, unshare or hand-over, without making it.

    Args:
        job: its key.
        shards: its virtual shards; none where it is whole.

    Raises:
        As `share` and `hand_over`; no error for a protected job that is whole, of which it can be asked for.
    """
    check_ownership_change(job, change)
    heads = _heads(store, job, shards)
    _check_all(store, job, heads, change, is_approved=not shards)  # a request is about one bookmark
    entries = store.index_entries(heads)
    owners = {name: owner_of(store, name, head) for name, head in heads.items()}
    now = [owners_in(entries.get(name)) or owners_in({DAG_ID: owner}) for name, owner in owners.items()]
    after = now
    if change.kind == "hand-over":
        is_renamed, to = change.renamed, str(change.dag)
        after = [owners_after(entries.get(n), owner, to, is_renamed=is_renamed) for n, owner in owners.items()]
    seen = _seen(store, heads)
    return OwnerChangePreview(
        job=job,
        kind=change.kind,
        seen=seen,
        owner=change.dag if change.kind == "hand-over" else seen.owner,
        shared_with=_shared_by(_shared_after(head, change) for head in heads.values()),
        asked_of=_each_once(now),
        asked_of_after=_each_once(after),
        shards=sum(not _is_so(store, name, head, change) for name, head in heads.items()) if shards else None,
        is_protected=change.kind in OWNER_KINDS and any(head.protected for head in heads.values()),
    )


def change_seen_owner(
    store: BookmarkStore,
    job: str,
    shards: Sequence[str],
    change: Change,
    seen: Ownership,
    *,
    reason: str,
    who: str,
) -> dict[str, Any]:
    """Make a share, unshare or hand-over of a job, provided that it has not changed since the preview.

    Args:
        job: its key.
        shards: its virtual shards, which are all that is changed; none where it is whole.
        seen: `seen` of a preview.

    Raises:
        ChangedMeanwhileError: it is not. Besides those of `share` and `hand_over`.
    """
    check_reason(change.kind, reason)
    check_who(who)
    check_ownership_change(job, change)
    heads = check_seen_owner(store, job, shards, change, seen)
    if not shards:
        return change_owner(store, job, change, reason=reason, who=who, seen=seen)
    done: dict[str, dict[str, Any]] = {}
    wanted = [name for name, head in heads.items() if not _is_so(store, name, head, change)]
    whose = {name: _seen(store, {name: heads[name]}) for name in wanted}
    _change_shards(store, job, wanted, change, done, whose, reason=reason, who=who)
    return {**next(iter(done.values())), "job": job, "shards": len(done)}


def check_seen_owner(
    store: BookmarkStore, job: str, shards: Sequence[str], change: Change, seen: Ownership, *, is_request: bool = False
) -> Mapping[str, Head]:
    """Make sure that a share, unshare or hand-over could be made, and that the job has not changed since the preview.

    Returns:
        The heads of the job or of its shards. `is_request`: it is to be asked for, so the job may be protected.
    """
    heads = _heads(store, job, shards)
    _check_seen(job, _seen(store, heads), seen)
    _check_all(store, job, heads, change, is_approved=is_request)
    return heads


def check_change(store: BookmarkStore, job: str, change: Change, *, reason: str) -> list[str]:
    """Make sure that a share, unshare or hand-over of a job, given by its key, could be made now.

    Returns:
        Its virtual shards; none if it is whole.

    Raises:
        As `share` and `hand_over`.
    """
    check_reason(change.kind, reason)
    check_ownership_change(job, change)
    shards = shards_of(store, job)
    _check_all(store, job, _heads(store, job, shards), change, is_approved=False)
    return shards


def _change_each(store: BookmarkStore, name: str, change: Change, reason: str, who: str) -> dict[str, Any]:
    job = resolve_name(store, name)
    check_who(who)
    shards = check_change(store, job, change, reason=reason)
    if not shards:
        return change_owner(store, job, change, reason=reason, who=who)
    done: dict[str, dict[str, Any]] = {}
    while left := [shard for shard in shards if not _is_so(store, shard, store.head(shard), change)]:
        _change_shards(store, job, left, change, done, reason=reason, who=who)
        shards = shards_of(store, job)  # a shard that began meanwhile belongs to the DAG that owned the others then
    if not done:  # somebody else has just made the same change
        raise _is_so_already(job, change)
    return {**next(iter(done.values())), "job": job, "shards": len(done)}


def _change_shards(
    store: BookmarkStore,
    job: str,
    shards: Sequence[str],
    change: Change,
    done: dict[str, dict[str, Any]],
    whose: Mapping[str, Ownership] | None = None,
    *,
    reason: str,
    who: str,
) -> None:
    """Change some shards, and add those that were changed to `done`.

    With `whose` each shard has to be as it was looked at.

    Raises:
        ShardsLeftError: one of them was refused, or somebody else has changed it after it was in `done`.
    """
    for shard in shards:
        try:
            if shard in done:
                raise ChangedMeanwhileError(f"somebody else changed the ownership of job {shard!r} at the same time.")
            seen = None if whose is None else whose[shard]
            done[shard] = change_owner(store, shard, change, reason=reason, who=who, seen=seen, is_any_version=True)
        except BookmarkError as error:
            if not done:
                raise
            left = list(dict.fromkeys([shard, *(each for each in shards if each not in done)]))
            made = [each for each in done if each not in left]
            raise ShardsLeftError(job, change.kind, made, left, {shard: error}) from error


def change_owner(
    store: BookmarkStore,
    job: str,
    change: Change,
    *,
    reason: str,
    who: str,
    version: int | None = None,
    request_id: str | None = None,
    seen: Ownership | None = None,
    is_any_version: bool = False,
) -> dict[str, Any]:
    """Make a share, unshare or hand-over of one job, given by its key; with `request_id`, one that was approved.

    With `seen`, it is refused if the job has changed since then; with `is_any_version` the job may have run since.

    Raises:
        As `share` and `hand_over`.
    """
    for _ in range(_RACES):
        head = store.head(job)
        if version is not None and head.version != version:
            break
        if seen is not None:
            now = _seen(store, {job: head})
            _check_seen(job, now, replace(seen, version=now.version) if is_any_version else seen)
        _check_changeable(store, job, head, change, is_approved=request_id is not None)
        if _is_so(store, job, head, change):
            raise _is_so_already(job, change)
        event: AuditEvent = {"kind": change.kind, **signed(who), "why": reason, "dag": change.dag}
        if request_id is not None:
            event["request"] = request_id
        shared = _shared_after(head, change)
        owner = owner_of(store, job, head)
        if change.kind == "hand-over":
            event |= {"renamed": True} if change.renamed else {}
            entry, to = _entry(store, job), str(change.dag)
            made = transition.hand_over(
                store, job, head, entry, to, event, is_renamed=change.renamed, request_id=request_id
            )
            owner = to
        else:
            made = transition.share(store, job, head, str(owner), shared, event, request_id=request_id)
        if made:
            return {"job": job, "change": change.kind, "owner": owner, "shared_with": shared}
    raise ChangedMeanwhileError(
        f"job {job!r} kept changing while its {change.kind} was to be made; nothing was changed. Try again."
    )


def ownership_of(store: BookmarkStore, job: str, head: Head) -> Ownership:
    """Return whose a job is, by its key and its head."""
    return _seen(store, {job: head})


def check_ownership_change(job: str, change: Change) -> None:
    """Make sure that a change of an owner names a DAG.

    Raises:
        OptionError: it does not, or its name is none.
    """
    if change.kind not in (*OWNER_KINDS, "unshare"):
        return
    if not change.dag or change.dag != change.dag.strip() or len(change.dag) > _MAX_DAG_ID:
        raise OptionError(
            f"job {job!r}: a {change.kind} names a DAG by its id, and {change.dag!r} is none. Nothing was changed."
        )
    if change.kind in OWNER_KINDS:  # names that a driver wrote can be removed, whatever they are
        check_typed_text("the id of the DAG", change.dag)


def _check_all(store: BookmarkStore, job: str, heads: Mapping[str, Head], change: Change, *, is_approved: bool) -> None:
    for name, head in heads.items():
        _check_changeable(store, name, head, change, is_approved=is_approved)
    if all(_is_so(store, name, head, change) for name, head in heads.items()):
        raise _is_so_already(job, change)


def _check_seen(job: str, now: Ownership, seen: Ownership) -> None:
    if now == seen:
        return
    raise ChangedMeanwhileError(
        f"job {job!r} is at version {now.version}, {_in_words(now)}, and not as it was looked at: at version "
        f"{seen.version}, {_in_words(seen)}. Nothing was changed. Look again and decide anew."
    )


def _in_words(ownership: Ownership) -> str:
    shared = ", ".join(map(repr, ownership.shared_with)) or "nobody"
    return f"owned by {'no one DAG' if ownership.owner is None else repr(ownership.owner)}, shared with {shared}"


def _check_changeable(store: BookmarkStore, job: str, head: Head, change: Change, *, is_approved: bool) -> None:
    if head.protected and not is_approved and change.kind in OWNER_KINDS:
        raise ProtectedError(
            f"job {job!r} is protected: {change.kind!r} needs the approval of a second person. Nothing was changed. "
            "Ask for it by the same command with --request; another person approves it then."
        )
    if change.kind == "hand-over":
        check_free(store, job, head, force=False)
    elif owner_of(store, job, head) is None:
        raise ChangeRefusedError(
            f"job {job!r} belongs to no DAG, so each DAG may run it, and the first one owns it. Nothing was changed. "
            f"To settle whose it is: 'airflow-bookmarks hand-over {job} --to DAG'."
        )


def _is_so(store: BookmarkStore, job: str, head: Head, change: Change) -> bool:
    """Whether nothing would change."""
    if change.kind == "unshare":
        return change.dag not in head.shared_with
    is_owner = owner_of(store, job, head) == change.dag
    return is_owner if change.kind == "hand-over" else is_owner or change.dag in head.shared_with


def _is_so_already(job: str, change: Change) -> ChangeRefusedError:
    how = {"share": "may run it already", "unshare": "does not share it", "hand-over": "owns it already"}[change.kind]
    return ChangeRefusedError(f"job {job!r}: DAG {change.dag!r} {how}. Nothing was changed.")


def _shared_after(head: Head, change: Change) -> list[str]:
    kept = [dag_id for dag_id in head.shared_with if dag_id != change.dag]
    return [*kept, str(change.dag)] if change.kind == "share" else kept


def _heads(store: BookmarkStore, job: str, shards: Sequence[str]) -> Mapping[str, Head]:
    heads = store.heads(shards) if shards else {job: store.head(job)}
    gone = [name for name in shards if name not in heads]
    if gone:
        raise JobUnknownError(
            f"sharded job {job!r}: its virtual shard {gone[0]!r} has no bookmark. Nothing was changed."
        )
    return heads


def _seen(store: BookmarkStore, heads: Mapping[str, Head]) -> Ownership:
    owners = {owner_of(store, name, head) for name, head in heads.items()}
    return Ownership(
        sum(head.version for head in heads.values()),
        owners.pop() if len(owners) == 1 else None,
        _shared_by(head.shared_with for head in heads.values()),
    )


def _shared_by(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({dag_id for each in lists for dag_id in each}))


def _each_once(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(dag_id for each in lists for dag_id in each))


def _entry(store: BookmarkStore, job: str) -> IndexEntry:
    entry = store.index_entry(job)
    if entry is None:
        raise StateCorruptError(
            f"the index item of job {job!r} is gone, which says whose the job was. Nothing was changed. "
            "'airflow-bookmarks doctor' says whether it can be written again."
        )
    return entry
