"""Find what a position that is set ahead skips, so that no run ever reads it. Without Spark; nothing is changed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.order import order_named
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.inspect.pending import (
    only_script_knows,
    recent_runs,
    recorded_on_change,
    recorded_plans,
)
from airflow_bookmarks.lifecycle.state.positions import READ_LATER, ContextReader
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.registry import find_kind, recorded_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch


@dataclass(frozen=True, slots=True)
class NeverReadInput:
    """The input that is there, was not read, and counts as read once a context is set.

    `files` and `bytes` are None where they can't be determined, for the reason in `unknown`. `runs` are those of an
    upstream, `consumers` the jobs that read this one: the output of the skipped input never reaches them.
    """

    files: int | None = 0
    bytes: int | None = 0
    runs: tuple[int, ...] = ()
    consumers: tuple[str, ...] = ()
    unknown: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "runs": list(self.runs), "consumers": list(self.consumers)}


def never_read_after(store: BookmarkStore, job: str, head: Head, switch: TimelineSwitch, ctx: str) -> NeverReadInput:
    """Return what no run would read after `switch` has set a context, by planning from the old and the new position."""
    reader = ContextReader(store, job, head)
    entry = recorded_plans(store, job, head, recent_runs(store, job, head)).get(ctx)
    consumers = tuple(sorted(edge.consumer for edge in store.edges(job)))
    if entry is None:
        return NeverReadInput(None, None, (), consumers, "no run is left that says how it was read")
    try:
        source = recorded_source(store, job, entry)
        why = only_script_knows(source)
        if why is not None:
            return NeverReadInput(None, None, (), consumers, why)
        found = reader.found_for(ctx, source, recorded_on_change(entry))
        before = source.plan(found)
        after = recorded_source(store, job, entry).plan(_found_after(store, found, switch, ctx))
    except (OptionError, SourceError, OSError) as error:
        return NeverReadInput(None, None, (), consumers, redacted(str(error)))
    if not isinstance(before, FilePlan) or not isinstance(after, FilePlan):  # two plans are compared by their names
        if goes_ahead(entry.kind, head.contexts.get(ctx), switch.contexts.get(ctx)) is False:
            return NeverReadInput()  # it goes back, or stays: what was not read is read from there too
        why = f"which of its {before.amount.unit} these are is not known"
        return NeverReadInput(None, None, (), consumers, why)
    unread, still = _unread(before), _unread(after)
    skipped = [size for path, size in unread.items() if path not in still]
    runs = tuple(number for number in _runs(before) if number not in _runs(after))
    return NeverReadInput(len(skipped), sum(skipped), runs, consumers if skipped or runs else ())


def goes_ahead(kind: str, before: ContextState | None, after: ContextState | None) -> bool | None:
    """Whether a context of a user's own kind has a higher watermark after a change; None where that is not known.

    Only a kind whose positions are totally ordered can tell: a lower sum of offsets may be a higher offset of one part.
    """
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
    compared = order_named(after.order).compare(after.watermark, before.watermark)
    return None if compared is None else compared > 0


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


def _unread(plan: FilePlan) -> dict[str, int]:
    """Return the files, with their sizes, that this run or a later one reads from where the plan began."""
    listings = [plan.files, *(files for reason, files in left_out(plan).items() if reason in READ_LATER)]
    return {file.path: file.size_bytes for files in listings for file in files}


def _runs(plan: FilePlan) -> tuple[int, ...]:
    return () if plan.edge is None else tuple(number for number, _ in plan.edge.runs)
