"""Shards of a job: 64 jobs that together read its input, and the checks that keep them apart from the whole job.

Each task reads the heads of all 64 in one request. Every file that was ever read is in the ledger of one of them, so
neither a shard read by another rule nor a whole job beside its shards can go unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError, JobUnknownError, NameInvalidError, OptionError
from airflow_bookmarks.core.rules.shard import said_as, shard_by_of, shard_name, shard_names

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class Layout:
    """The shards of a job as they stood when a task began: the heads of those that exist."""

    job: str
    heads: Mapping[str, Head]

    @classmethod
    def of(cls, store: BookmarkStore, job: str) -> Layout:
        """Return the shards of a job that a run is about to shard.

        Raises:
            ChangeRefusedError: it has committed runs as a whole, which its shards know nothing of.
        """
        names = shard_names(job)
        heads = store.heads([job, *names])
        whole = heads.pop(job, None)
        if whole is not None and whole.contexts:
            raise ChangeRefusedError(
                f"job {job!r} has a bookmark as a whole, up to run {whole.run_number}: its shards would read all of "
                "that again. Nothing was read or changed. Leave it whole; or, where all may be read again, give the "
                f"sharded job a name of its own, or 'airflow-bookmarks reset {job}'."
            )
        return cls(job, heads)

    def check_rule(self, ctx: str, by: str) -> None:
        """Make sure that no shard has read a context by another rule, by which its input would belong to other shards.

        Raises:
            OptionError: one has.
        """
        for name, head in self.heads.items():
            state = head.contexts.get(ctx)
            was = None if state is None else shard_by_of(state.fingerprint)
            if was is not None and was != by:
                raise OptionError(
                    f"job {self.job!r}, context {ctx!r}: {said_as(by)}, and {name!r} has read it by {said_as(was)}: "
                    "input would move to shards that do not know whether it was read. Nothing was read or changed. Use "
                    f"{said_as(was)}, or another name for the context, with which everything is read again."
                )


def check_not_sharded(store: BookmarkStore, job: str) -> None:
    """Make sure that a job that begins as a whole has no shards.

    Raises:
        ChangeRefusedError: it has, and would read again what they have read.
    """
    read = sorted(name for name, head in store.heads(shard_names(job)).items() if head.contexts)
    if read:
        raise ChangeRefusedError(
            f"job {job!r} has no bookmark, and {len(read)} of its shards have, {read[0]!r} the first: as a whole it "
            "would read again what they have read. Nothing was read or changed. Give it its shard (bookmark_shard), "
            "or another name."
        )


def head_of_whole(store: BookmarkStore, job: str) -> Head:
    """Return the head of a job that is not sharded.

    Raises:
        JobUnknownError: there is no such bookmark, or it is that of its virtual shards; the message says which.
    """
    try:
        return store.head(job)
    except JobUnknownError as error:
        shards = sorted(store.heads(shard_names(job)))
        if not shards:
            raise
        raise JobUnknownError(
            f"job {job!r} is sharded: it has no bookmark of its own but {len(shards)} of its virtual shards, "
            f"{shards[0]!r} to {shards[-1]!r}. Nothing was changed. Name one of these."
        ) from error


def is_sharded(store: BookmarkStore, job: str) -> bool:
    """Whether `job` is the name of a sharded job that has begun."""
    return bool(store.heads(shard_names(job)))


def shards_of(store: BookmarkStore, job: str) -> list[str]:
    """Return the virtual shards that a sharded job has begun, in order; none if `job` is whole or unknown.

    A bookmark of the whole job that was reset beside shards that have read does not count: the shards are the job now.
    """
    whole = store.heads([job]).get(job)
    if whole is not None and whole.contexts:
        return []
    try:
        heads = store.heads(shard_names(job))
    except NameInvalidError:  # the name is too long for a sharded job
        return []
    if whole is not None and not any(head.contexts for head in heads.values()):
        return []
    return sorted(heads)


def upstream_of_shard(store: BookmarkStore, upstream: str, number: int) -> str | None:
    """Return the virtual shard of a sharded upstream that shard `number` reads: the one with the same number.

    None where the upstream is not sharded, according to its heads.
    """
    name = shard_name(upstream, number)
    heads = store.heads([upstream, name])
    if name in heads:
        return name
    return None if upstream in heads or not is_sharded(store, upstream) else name
