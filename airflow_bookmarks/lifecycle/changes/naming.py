"""Names of jobs: rename a job, let a renamed DAG go on with its bookmark, delete a bookmark.

A job's key is its first name. Item keys, staging folders, tokens and consumers' edges are made of it, so a rename moves
nothing: it adds an alias, and the job goes by both names from then on.

    rename   flights.clean -> lake.clean        lake.clean is the key flights.clean
    adopt    the same, seen from the new name, which may have begun with nothing to show for it
    delete   a line that keeps no run: a reset that lists hide until the job runs again
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from airflow_bookmarks.core.errors import ChangedMeanwhileError, ChangeRefusedError, NameTakenError, OptionError
from airflow_bookmarks.core.rules.audit import ChangeAudit, check_reason, check_who
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.core.text.script import check_new_name
from airflow_bookmarks.lifecycle.changes.change import Change, ChangeOutcome, apply
from airflow_bookmarks.lifecycle.inspect.status import readable_keys, readable_names
from airflow_bookmarks.sources.registry import upstream_of
from airflow_bookmarks.store.transitions import naming as transition
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

_RACES = 10


def key_of(store: BookmarkStore, name: str) -> str:
    """Return the key of the job with this name: `name` itself unless it came from a rename. One read."""
    return transition.resolve_name(store, name)


def names_of(store: BookmarkStore, job: str) -> list[str]:
    """Return all names of a job, its key first; reads the whole index, and skips what of it can't be read."""
    key = key_of(store, job)
    return [key, *readable_names(store).others.get(key, [])]


# ---- rename, adopt


def rename(store: BookmarkStore, job: str, new_name: str, *, reason: str, who: str) -> dict[str, Any]:
    """Rename a job. It keeps the old name too, so consumers and DAGs can change over one by one.

    Args:
        job: any of its names.
        new_name: a name that no job has.
        reason, who: for the audit event.

    Raises:
        OptionError: no reason. JobUnknownError. NameInvalidError: it can't be a name.
        NameTakenError: a job has it already. ChangedMeanwhileError. StateCorruptError: its index item is gone.
    """
    check_reason("rename", reason)
    check_who(who)
    key = key_of(store, job)
    for _ in range(_RACES):
        head, name = check_rename(store, key, new_name)
        event: AuditEvent = {"kind": "rename", **signed(who), "why": reason}
        if transition.add_alias(store, key, head, name, None, event):
            return {"job": key, "change": "rename", "name": name}
    raise _kept_changing(key, f"renamed to {new_name!r}")


def check_rename(store: BookmarkStore, key: str, new_name: str) -> tuple[Head, str]:
    """Return the head of a job, given by its key, and the new name as it would be stored, if the job may have it now.

    Raises:
        As `rename`.
    """
    name = check_new_name("job", new_name, ascii_only=store.ascii_names)
    head = store.head(key)
    collected_until(store, key)  # which can't be told where the index item is gone
    entry, taken = store.index_entry(name), store.snapshot(name).head
    owner = transition.alias_of(entry, name) or name
    if owner == key:
        raise NameTakenError(f"{name!r} is a name of job {key!r} already. Nothing was changed.")
    if owner != name:
        raise NameTakenError(f"{name!r} is a name of job {owner!r} already. Nothing was changed. Take another one.")
    if entry is not None or taken is not None:
        raise NameTakenError(
            f"there is a job {name!r} already. Nothing was changed. Take another name; or, if it is job {key!r} "
            f"after its DAG or task was renamed, 'airflow-bookmarks adopt {name} --from {key}'."
        )
    return head, name


def adopt(store: BookmarkStore, job: str, from_job: str, *, reason: str, who: str) -> dict[str, Any]:
    """Let a job without runs adopt the bookmark of another one: that of its DAG or task before a rename.

    Both names are one job from then on. Its runs under the new name begin where those under the old one ended.

    Args:
        job: the new name. It may have begun, and failed; it has not committed anything that still counts.
        from_job: the job whose bookmark it takes over, by any of its names.
        reason, who: for the audit event.

    Raises:
        OptionError: no reason. JobUnknownError: there is no `from_job`. NameInvalidError: `job` can't be a name.
        NameTakenError: `job` has a bookmark of its own. ChangedMeanwhileError. StateCorruptError: the index item of
            `from_job` is gone.
        ChangeRefusedError: a run holds it; or one was left open, and may have written to a sink that commits by itself.
    """
    check_reason("adopt", reason)
    check_who(who)
    key, name = key_of(store, from_job), check_new_name("job", job, ascii_only=store.ascii_names)
    for _ in range(_RACES):
        head = store.head(key)
        collected_until(store, key)
        entry = store.index_entry(name)
        owner = transition.alias_of(entry, name)
        if name == key or owner == key:
            raise NameTakenError(f"{name!r} is a name of job {key!r} already. Nothing was changed.")
        if owner is not None:
            raise NameTakenError(f"{name!r} is a name of job {owner!r}. Nothing was changed. Take another name.")
        own = store.snapshot(name).head
        empty = None if own is None else _emptied(store, name, own, key, entry)
        event: AuditEvent = {"kind": "adopt", **signed(who), "why": reason}
        if transition.add_alias(store, key, head, name, empty, event):
            return {"job": key, "change": "adopt", "name": name}
    raise _kept_changing(key, f"adopted by {name!r}")


def _emptied(store: BookmarkStore, name: str, head: Head, key: str, entry: IndexEntry | None) -> transition.EmptyJob:
    """Return a job that may become another name of job `key`."""
    _check_empty(store, name, head, key)
    renamed_to = (entry or {}).get("renamed_to")
    names = transition.aliases(store.jobs()).get(name, []) if renamed_to is not None else []
    return transition.EmptyJob(head, names, None if renamed_to is None else str(renamed_to))


def _check_empty(store: BookmarkStore, name: str, head: Head, key: str) -> None:
    if head.lease is not None:
        raise ChangeRefusedError(
            f"job {name!r} is held by {head.lease.run_id!r} (attempt {head.lease.attempt}). Nothing was changed. Let "
            f"that run end, or stop it and 'airflow-bookmarks unlock {name}', before {name!r} adopts job {key!r}."
        )
    due = head.publishing is not None or head.cleaning is not None
    if head.contexts or due or store.edges(name):
        raise NameTakenError(
            f"job {name!r} has a bookmark of its own (run {head.run_number}), which would be lost from sight. Nothing "
            f"was changed. If it is what a renamed DAG has read a second time: remove those rows from its target, "
            f"'airflow-bookmarks delete {name}', and adopt job {key!r} then."
        )
    _check_nothing_may_have_landed(store, name, head, key)


def _check_nothing_may_have_landed(store: BookmarkStore, name: str, head: Head, key: str) -> None:
    """Make sure that no open run may have rows in a sink that commits by itself.

    Nobody begins under the key `name` any more once it is adopted, so nobody would settle that run, and its input would
    be read again. The transaction proves that no run has begun since `head` was read.

    Raises:
        ChangeRefusedError: one may have.
    """
    landed = may_have_landed(store, name, head)
    if landed is not None:
        run, targets = landed
        raise ChangeRefusedError(
            f"job {name!r}: its run {run.key} was left open, and its rows may be in {targets} already: "
            f"job {key!r} does not know of them, and would write them again. Nothing was changed. Let one more run "
            f"of {name!r} begin, and stop it before it writes (in a notebook: job.begin(), job.abort()): that "
            f"settles run {run.key.number} first. Then adopt; if the rows are there, the refusal says what to do."
        )


def may_have_landed(store: BookmarkStore, job: str, head: Head) -> tuple[Run, str] | None:
    """Return an open run whose rows may be in sinks that commit by themselves, and the targets there; else None."""
    for run in store.open_runs(job, head):
        targets = sorted(output.target for output in run.outputs.values() if output.commits_by_itself)
        if targets:
            return run, ", ".join(targets)
    return None


# ---- delete


def delete(
    store: BookmarkStore, job: str, *, typed_name: str, clean: bool = False, **terms: Unpack[ChangeAudit]
) -> ChangeOutcome:
    """Delete the bookmark of a job: the next run reads everything, and lists omit the job until then.

    History, events and numbers stay, so a later run goes on with higher numbers, and consumers see that the job went
    back. What it has noted with its upstream jobs goes, so no history is kept for it. An undo takes the deletion back.

    Args:
        job: any of its names.
        typed_name: the same name, typed out by whoever wants it.
        clean, terms: as for `change.reset`.

    Raises:
        OptionError: no reason, or another name. StoreAccessError: this role may not delete. Besides those of
            `change.reset`.
    """
    check_typed(job, typed_name)
    return make_deletion(store, key_of(store, job), Change("delete", clean=clean), **terms)


def make_deletion(store: BookmarkStore, job: str, change: Change, **terms: Unpack[ChangeAudit]) -> ChangeOutcome:
    """Delete the bookmark of a job, given by its key, whose name was typed out; for the rest see `change.apply`.

    If the process ends half-way, the job stands reset, with the event of its deletion, and is still listed; deleting it
    again does no harm, and removes what is left of its edges.
    """
    transition.check_may_delete(store, job)
    changed = apply(store, job, change, **terms)
    upstreams = {name for state in changed.before.contexts.values() if (name := upstream_of(state)) is not None}
    known, _ = readable_keys(store)  # a job whose entry can't be read is among those that the head names, if any
    transition.hide(store, job, changed.after, sorted(upstreams | known.keys()))
    return changed


def check_typed(job: str, typed_name: str) -> None:
    """Make sure that a person typed the name of the job that is to be deleted.

    Raises:
        OptionError: it is another one.
    """
    if typed_name != job:
        raise OptionError(
            f"to delete the bookmark of job {job!r}, its name has to be typed out, and {typed_name!r} is not it. "
            "Nothing was changed."
        )


# ---- what is refused


def _kept_changing(job: str, what: str) -> ChangedMeanwhileError:
    return ChangedMeanwhileError(
        f"job {job!r} kept changing while it was to be {what}; nothing was changed. Try again."
    )
