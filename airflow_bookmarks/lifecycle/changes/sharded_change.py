"""Changes of a sharded job as a whole: previewed in all of its virtual shards, then made shard by shard.

    look at each shard -> refuse before anything is changed -> change one shard after the other, each with its own event

Each shard is a job of its own, so the change of one shard is one transaction, and that of all shards is not: whatever
can be refused is refused first. A shard that already stands there is left alone, so repeating the same change completes
the shards that are left. `preview_job` and `change_job` take any job, sharded or not.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

from airflow_bookmarks.core.errors import (
    BookmarkError,
    ChangedMeanwhileError,
    JobBusyError,
    OptionError,
    ProtectedError,
    ShardsBusyError,
    ShardsLeftError,
    StoreError,
)
from airflow_bookmarks.core.rules.audit import ChangeAudit, check_reason, check_who
from airflow_bookmarks.lifecycle.changes.change import Change, ChangeOutcome, apply, check_free
from airflow_bookmarks.lifecycle.changes.preview import ChangePreview, preview
from airflow_bookmarks.lifecycle.history.sharded_point import changes_of_shards
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.history.timeline_switch import cleans_more
from airflow_bookmarks.lifecycle.inspect.runs import sum_of, total
from airflow_bookmarks.store.transitions.importing import check_unclaimed
from airflow_bookmarks.store.transitions.naming import resolve_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

KINDS = ("reset", "rewind")
"""The changes that a sharded job takes as one."""


@dataclass(frozen=True, slots=True)
class ShardedChangePreview:
    """What a change of a sharded job would do: a preview of each shard that would change, and the shards that stay.

    `version` is the sum of the versions of all shards: it grows whenever one of them does.
    """

    job: str
    change: Change
    version: int
    shards: Mapping[str, ChangePreview]
    unchanged: tuple[str, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values: sums over all shards, and each shard that would change by its name."""
        seen = {shard: each.as_dict() for shard, each in self.shards.items()}
        again = [each["read_again"] for each in seen.values()]
        return {
            "job": self.job,
            "change": self.change.kind,
            "version": self.version,
            "shards": len(self.shards),
            "unchanged_shards": len(self.unchanged),
            "undone_run_count": sum(each["undone_run_count"] for each in seen.values()),
            "unreadable_runs": [f"{shard}: {key}" for shard, each in seen.items() for key in each["unreadable_runs"]],
            "read_again": {
                **{name: total(again, name) for name in ("files", "bytes", "rows")},
                "amounts": _sums_by_unit(each["amounts"] for each in again),
            },
            "consumers": {
                f"{consumer} (of {shard})": number
                for shard, each in seen.items()
                for consumer, number in each["consumers"].items()
            },
            **_twice(list(seen.values())),
            "files_to_clean": sum(each["files_to_clean"] for each in seen.values()),
            "outputs_to_clean": sum(each["outputs_to_clean"] for each in seen.values()),
            "files_left_by_undone_runs": total(seen.values(), "files_left_by_undone_runs"),
            "holders": {shard: each["holder"] for shard, each in seen.items() if each["holder"] is not None},
            "by_shard": seen,
        }


def _sums_by_unit(amounts: Iterable[Mapping[str, int | None]]) -> dict[str, int | None]:
    """Return the sums of what shards would read again, by unit; None where one of them does not know it."""
    seen = list(amounts)
    return {unit: sum_of(each[unit] for each in seen if unit in each) for unit in dict.fromkeys(chain(*seen))}


def _twice(seen: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the targets of all shards that would hold rows twice; not known are those of which no shard is sure."""
    surely = {t for each in seen for t in each["written_twice"] if t not in each["written_twice_unknown"]}
    maybe = {t for each in seen for t in each["written_twice_unknown"]} - surely
    return {"written_twice": sorted(surely | maybe), "written_twice_unknown": sorted(maybe)}


@dataclass(frozen=True, slots=True)
class ShardedChanged:
    """What a change of a sharded job did: the result of each changed shard, and the shards that stay as they were."""

    job: str
    kind: str
    shards: Mapping[str, ChangeOutcome]
    unchanged: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for XCom, CLI and notes."""
        done = {shard: each.as_dict() for shard, each in self.shards.items()}
        return {
            "job": self.job,
            "change": self.kind,
            "shards": len(done),
            "unchanged_shards": len(self.unchanged),
            "undone_run_count": sum(each["undone_run_count"] for each in done.values()),
            "unreadable_runs": [f"{shard}: {key}" for shard, each in done.items() for key in each["unreadable_runs"]],
            "files_to_clean": sum(each["files_to_clean"] for each in done.values()),
            "outputs_to_clean": sum(each["outputs_to_clean"] for each in done.values()),
            "by_shard": {
                shard: {name: each[name] for name in ("to_run", "undone_run_count", "epoch", "version")}
                for shard, each in done.items()
            },
        }


# ---- any job


def preview_job(store: BookmarkStore, job: str, change: Change) -> ChangePreview | ShardedChangePreview:
    """Preview a change of a job, sharded or not, without making it; for the errors see `preview`."""
    shards = _shards(store, job, change)
    return _look(store, job, shards, change) if shards else preview(store, job, change)


def change_job(
    store: BookmarkStore, job: str, change: Change, **terms: Unpack[ChangeAudit]
) -> ChangeOutcome | ShardedChanged:
    """Make a change of a job, sharded or not; for the terms and errors see `change.apply`.

    Raises:
        ShardsBusyError: runs hold virtual shards; nothing was changed. ShardsLeftError: some shards were changed, and
            others were refused meanwhile; the same change again takes those.
    """
    shards = _shards(store, job, change)
    return change_shards(store, job, shards, change, **terms) if shards else apply(store, job, change, **terms)


def takes_shards(store: BookmarkStore, job: str, change: Change) -> bool:
    """Whether `job` is sharded, and takes this change as a whole."""
    return bool(_shards(store, job, change))


def _shards(store: BookmarkStore, job: str, change: Change) -> list[str]:
    return shards_of(store, resolve_name(store, job)) if change.kind in KINDS else []


# ---- a sharded job


def preview_shards(store: BookmarkStore, job: str, shards: Sequence[str], change: Change) -> ShardedChangePreview:
    """Preview a change of a sharded job in some shards, without making it; for the errors see `preview`.

    Raises:
        OptionError: it is no change that a sharded job takes as one.
    """
    if change.kind not in KINDS:
        raise OptionError(
            f"job {job!r} is sharded, and takes {' and '.join(KINDS)} as one, not {change.kind!r}. Nothing was "
            "changed. Name a virtual shard."
        )
    return _look(store, job, shards, change)


def change_shards(
    store: BookmarkStore,
    job: str,
    shards: Sequence[str],
    change: Change,
    *,
    done: Collection[str] = (),
    **terms: Unpack[ChangeAudit],
) -> ShardedChanged:
    """Make a change of a sharded job, shard by shard; see `change_job`.

    Args:
        shards: its virtual shards, as `shards_of` returns them.
        done: those of them that are left alone, whatever they stand at.
        terms: `expected_version` is the one of a `ShardedChangePreview`.
    """
    check_reason(change.kind, terms["reason"])
    check_who(terms["who"])
    seen = _look(store, job, shards, change)
    expected = terms.get("expected_version")
    if expected is not None and seen.version != expected:
        raise ChangedMeanwhileError(
            f"sharded job {job!r} is at version {seen.version} and not {expected} any more. Nothing was changed. Look "
            "again and decide anew."
        )
    wanted = [shard for shard in seen.shards if shard not in done]
    _check_all(store, job, wanted, change, terms)
    return _made(store, seen, wanted, terms)


def _made(
    store: BookmarkStore, seen: ShardedChangePreview, wanted: Sequence[str], terms: ChangeAudit
) -> ShardedChanged:
    made: dict[str, ChangeOutcome] = {}
    refused: dict[str, BookmarkError] = {}
    for shard in wanted:
        own: ChangeAudit = {**terms, "expected_version": seen.shards[shard].version}
        try:
            made[shard] = apply(store, shard, seen.changes[shard], **own)
        except BookmarkError as error:
            refused[shard] = error
            if isinstance(error, StoreError):  # the next shard would only wait for the same store
                break
    if refused:
        left = [shard for shard in wanted if shard not in made]
        raise ShardsLeftError(seen.job, seen.change.kind, tuple(made), tuple(left), refused)
    log.info("bookmark %s: %s made in %d virtual shards", seen.job, seen.change.kind, len(made))
    unchanged = tuple(sorted({*seen.unchanged, *(shard for shard in seen.shards if shard not in made)}))
    return ShardedChanged(seen.job, seen.change.kind, made, unchanged)


def _look(store: BookmarkStore, job: str, shards: Sequence[str], change: Change) -> ShardedChangePreview:
    """Preview all shards, and change nothing."""
    heads = store.heads(shards)
    changes = _changes(store, job, heads, change)
    seen: dict[str, ChangePreview] = {}
    for shard, own in changes.items():
        looked = preview(store, shard, own)
        if not stands(store, shard, heads[shard], own, looked):
            seen[shard] = looked
    versions = sum(seen[shard].version if shard in seen else head.version for shard, head in heads.items())
    unchanged = tuple(shard for shard in heads if shard not in seen)
    return ShardedChangePreview(job, change, versions, seen, unchanged, {shard: changes[shard] for shard in seen})


def _changes(store: BookmarkStore, job: str, heads: Mapping[str, Head], change: Change) -> dict[str, Change]:
    """Return the requested change by shard; shards that have none of the contexts are left out.

    Raises:
        OptionError: no shard has one of the contexts, or a rewind says no point of all shards. RunUnknownError: there
            is no such point.
    """
    wanted = changes_of_shards(store, job, heads, change)
    if change.contexts is None:
        return wanted
    known = {ctx for head in heads.values() for ctx in head.contexts}
    unknown = sorted(set(change.contexts) - known)
    if unknown or not change.contexts:
        raise OptionError(
            f"sharded job {job!r}: none of its shards has a context {', '.join(map(repr, unknown)) or '(none given)'}; "
            f"they have {sorted(known)}. Nothing was changed."
        )
    own = {shard: tuple(ctx for ctx in change.contexts if ctx in head.contexts) for shard, head in heads.items()}
    return {shard: replace(wanted[shard], contexts=names) for shard, names in own.items() if names}


def stands(store: BookmarkStore, job: str, head: Head, change: Change, seen: ChangePreview) -> bool:
    """Whether a job already stands where a reset or rewind would take it."""
    if head.lease is not None or seen.undone or seen.unreadable or seen.version != head.version:
        return False
    switch = change.switch(HistorySnapshot(store, job, head), {})
    return switch.contexts == head.contexts and not cleans_more(store, head, switch)


# ---- what is refused, before anything is changed


def _check_all(store: BookmarkStore, job: str, shards: Sequence[str], change: Change, terms: ChangeAudit) -> None:
    heads = store.heads(shards)
    busy: list[JobBusyError] = []
    for shard, head in heads.items():
        check_unclaimed(shard, head)
        try:
            check_free(store, shard, head, terms.get("force", False))
        except JobBusyError as error:
            busy.append(error)
    guarded = [shard for shard, head in heads.items() if head.protected]
    if guarded:
        raise ProtectedError(
            f"sharded job {job!r}: {named(guarded)} protected, and {change.kind!r} needs the approval of a second "
            "person there. Nothing was changed in any shard. Ask for it with --request on the command line, for each "
            "of these by its own name, and change the whole after that."
        )
    if busy:
        raise ShardsBusyError(job, busy)


def check_not_requested(job: str, is_request: bool) -> None:
    """Refuse a request for a change of a sharded job: a request is about one bookmark.

    Raises:
        OptionError: it is.
    """
    if is_request:
        raise OptionError(
            f"job {job!r} is sharded: a request is of one virtual shard, by its own name. Nothing was asked for. Ask "
            "for those that are protected, and change the whole without a request after that."
        )


def named(shards: Sequence[str]) -> str:
    """Return some shards as the subject of a sentence: the first few by name, and the number of the others."""
    first = ", ".join(shards[:3]) + (f" and {len(shards) - 3} more" if len(shards) > 3 else "")
    return f"{first} {'is' if len(shards) == 1 else 'are'}"
