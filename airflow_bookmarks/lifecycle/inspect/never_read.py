"""Find what a position that is set ahead skips, so that no run ever reads it. Without Spark; nothing is changed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import FILES, ROWS
from airflow_bookmarks.core.errors import DatabaseError, LookRefusedError, OptionError, SourceError
from airflow_bookmarks.core.order import order_named
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.inspect.pending import (
    recent_runs,
    recorded_on_change,
    recorded_plans,
)
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.sources.registry import find_kind, only_script_knows, passed_over, recorded_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.sources.passed_over import PassedOver
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch


@dataclass(frozen=True, slots=True)
class NeverReadInput:
    """The input that is there, was not read, and counts as read once a context is set.

    Attributes:
        files, bytes, rows: How much it is; None: it is not counted so.
        runs: Those of an upstream.
        consumers: The jobs that read this one: the output of the skipped input never reaches them.
        unknown: Why it is not known how much it is; None: it is known.
        amounts: By its unit what else is counted: "versions", "snapshots", or what a user's own kind counts.
    """

    files: int | None = 0
    bytes: int | None = 0
    runs: tuple[int, ...] = ()
    consumers: tuple[str, ...] = ()
    unknown: str | None = None
    rows: int | None = None
    amounts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, passed: PassedOver, consumers: tuple[str, ...]) -> NeverReadInput:
        """Return it for what a kind has counted; nothing, if that is nothing.

        Args:
            consumers: the jobs that read this one.

        Example:
            >>> from airflow_bookmarks.core.amount import Amount
            >>> from airflow_bookmarks.sources.passed_over import PassedOver
            >>> passed = PassedOver(Amount("files", 3, 900, 40), commits=Amount("versions", 2))
            >>> never = NeverReadInput.of(passed, ("report",))
            >>> never.files, never.bytes, never.rows, never.amounts
            (3, 900, 40, {'versions': 2})
        """
        if passed.is_nothing:
            return cls()
        amount = passed.amount
        unknown = amount.in_words() if amount.count is None else None
        commits = passed.commits
        others = {commits.unit: commits.count} if commits is not None and commits.count else {}
        if amount.unit == FILES:
            return cls(amount.count, amount.bytes, passed.runs, consumers, unknown, amount.rows, others)
        if amount.unit == ROWS:
            return cls(None, amount.bytes, passed.runs, consumers, unknown, amount.count, others)
        if amount.count is not None:
            others = {amount.unit: amount.count, **others}
        return cls(None, amount.bytes, passed.runs, consumers, unknown, amount.rows, others)

    @classmethod
    def not_counted(cls, why: str, consumers: tuple[str, ...]) -> NeverReadInput:
        """Return it where nothing is known of it, for the reason `why`."""
        return cls(None, None, (), consumers, why)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        lists = {"runs": list(self.runs), "consumers": list(self.consumers), "amounts": dict(self.amounts)}
        return {**asdict(self), **lists}


def never_read_after(store: BookmarkStore, job: str, head: Head, switch: TimelineSwitch, ctx: str) -> NeverReadInput:
    """Return what no run would read after `switch` has set a context, as its kind counts it between two positions."""
    reader = ContextReader(store, job, head)
    entry = recorded_plans(store, job, head, recent_runs(store, job, head)).get(ctx)
    consumers = tuple(sorted(edge.consumer for edge in store.edges(job)))
    if entry is None:
        return NeverReadInput.not_counted("no run is left that says how it was read", consumers)
    try:
        source = recorded_source(store, job, entry)
        unlisted = only_script_knows(entry, source)
        if unlisted is not None:
            return NeverReadInput.not_counted(f"can't be counted: {unlisted}", consumers)
        found = reader.found_for(ctx, source, recorded_on_change(entry))
        passed = passed_over(store, job, entry, found, _found_after(store, found, switch, ctx))
    except LookRefusedError as error:
        why = f"not counted here: {redacted(str(error))}"
    except (OptionError, SourceError, DatabaseError, OSError) as error:
        why = f"can't be counted: {redacted(str(error))}"
    else:
        if passed is not None:
            return NeverReadInput.of(passed, consumers)
        if goes_ahead(entry.kind, head.contexts.get(ctx), switch.contexts.get(ctx)) is False:
            return NeverReadInput()  # it goes back, or stays: what was not read is read from there too
        why = "not counted: this kind of source can't tell"
    way = _way(entry.kind, head.contexts.get(ctx), switch.contexts.get(ctx))
    return NeverReadInput() if way is not None and way < 0 else NeverReadInput.not_counted(why, consumers)


def goes_ahead(kind: str, before: ContextState | None, after: ContextState | None) -> bool | None:
    """Whether a context has a higher watermark after a change; None where that is not known.

    Only a kind whose positions are totally ordered can tell: a lower sum of offsets may be a higher offset of one part.
    """
    way = _way(kind, before, after)
    return None if way is None else way > 0


def _way(kind: str, before: ContextState | None, after: ContextState | None) -> int | None:
    """Return how the watermark after a change compares with the one before: < 0 if it goes back; None: not known."""
    found = find_kind(kind)
    if (
        found is None
        or not found.is_totally_ordered
        or before is None
        or after is None
        or before.watermark is None
        or after.watermark is None
    ):
        return None
    if after.order is None or before.order != after.order or before.watermark_column != after.watermark_column:
        return None
    return order_named(after.order).compare(after.watermark, before.watermark)


def _found_after(store: BookmarkStore, found: PlanInput, switch: TimelineSwitch, ctx: str) -> PlanInput:
    """Return what the source is planned from after the switch, whose blobs are not stored yet."""
    unsaved = {hashlib.sha256(body).hexdigest(): body for body in switch.bodies}

    def load(names: Sequence[str]) -> Mapping[str, bytes]:
        own = {name: unsaved[name] for name in names if name in unsaved}
        missing = [name for name in names if name not in own]
        return {**own, **(store.blobs.get_named(missing) if missing else {})}

    payload = switch.positions[ctx]
    position = unsaved[payload.sha256] if payload.inline is None else payload.inline
    return replace(found, position=position, load=load, watermark=switch.contexts[ctx].watermark)
