"""Decode the facts of plans, outputs and metrics, and check the types that code relies on.

Names that are not listed here are display-only and kept as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.store.codec.attribute import Fields, is_moment, is_number, is_size, run_key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def facts_of(fields: Fields) -> Mapping[str, Any]:
    """Return the facts of a plan, an output or a context's metrics.

    Raises:
        StateCorruptError: one of them is not what its readers rely on.
    """
    for name, (is_valid, what) in _FACTS.items():
        fields.check(name, is_valid, what)
    if "upstream" in fields:
        window = fields.map("upstream")
        window.text("job")
        window.optional_text("output")
        for name in ("after", "until", "epoch", "changes"):
            window.number(name)
        window.numbers("runs")
        window.size("replaced")
    return fields.values


def metrics_of(fields: Fields) -> Mapping[str, Any]:
    """Return the metrics of a run: facts by context, seconds by step, and what it did with `job.state`.

    Raises:
        StateCorruptError: one of them is not what its readers rely on.
    """
    if "contexts" in fields:
        for _, facts in fields.map("contexts").maps():
            facts_of(facts)
    fields.check("seconds", _is_map_of(_is_text), "no map of texts")
    if STATE_KIND in fields:
        state = fields.map(STATE_KIND)
        state.check("from", _is_run_or_none, "no run as number.fence")
        state.check("names", _is_texts, "no list of texts")
        if "set_in" in state:
            state.number("set_in")
    return fields.values


def is_map_of_numbers(value: object) -> bool:
    """Whether a value is a map of run numbers."""
    return isinstance(value, dict) and all(is_number(each) for each in value.values())


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_moment(value: object) -> bool:
    return isinstance(value, str) and is_moment(value)


def _is_size_or_none(value: object) -> bool:
    return value is None or is_size(value)


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _is_run_or_none(value: object) -> bool:
    return value is None or run_key_of(value) is not None


def _is_map_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(is_valid(each) for each in value.values())


def _is_gaps(value: object) -> bool:
    return isinstance(value, dict) and all(
        is_valid(value.get(name)) for names, is_valid in _GAPS for name in names.split()
    )


_GAPS = (
    ("unit of first last seen", _is_text),
    ("missing more_ranges lost", is_size),
    ("ranges", _is_texts),
)
_SIZE, _TEXT, _TEXT_OR_NONE = (is_size, "no count"), (_is_text, "no text"), (_is_text_or_none, "no text")
_FACTS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "files": _SIZE,
    "bytes": _SIZE,
    "listed": _SIZE,
    "known": _SIZE,
    "read_again": _SIZE,
    "replaced_files": _SIZE,
    "replaced_rows": (_is_size_or_none, "no count"),
    "replaced_runs": _TEXT,
    "partly_read": (_is_texts, "no list of texts"),
    "maybe_partly_read": (_is_flag, "neither true nor false"),
    "deleted_files": _SIZE,
    "quarantined": _SIZE,
    "watermark_column": _TEXT,
    "greatest": _TEXT_OR_NONE,
    "on_published": _TEXT,
    "is_read_whole": (_is_flag, "neither true nor false"),
    "rows": (_is_size_or_none, "no count"),
    "skipped": (_is_map_of(is_size), "no map of counts"),
    "partitions": (_is_map_of(is_size), "no map of counts"),
    "partition_types": (_is_map_of(_is_text), "no map of texts"),
    "partition_by": (_is_texts, "no list of texts"),
    "options": (_is_map, "no map"),
    "gaps": (_is_gaps, "no gaps"),
    "newest_partition": _TEXT,
    "waiting_from_ms": (_is_whole_number, "no whole number"),
    "waiting_bytes": _SIZE,
    "waiting_oldest_ms": (_is_whole_number, "no whole number"),
    "looked_at": (_is_moment, "no time"),
    "mode": _TEXT,
    "format": _TEXT,
    "starts_from": _TEXT_OR_NONE,
    "starts_over": (_is_flag, "neither true nor false"),
    "watermark_before": _TEXT_OR_NONE,
}
