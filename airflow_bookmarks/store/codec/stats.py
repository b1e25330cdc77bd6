"""Decode the stats of plans, outputs and metrics, and check the types that code relies on.

Names that `core.metadata.known` does not list are display-only and kept as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.metadata.known import KNOWN, is_map_of, is_size, is_text, is_texts
from airflow_bookmarks.core.text.count import LEFT_OUT
from airflow_bookmarks.store.codec.attribute import Fields, is_number, run_key_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def stats_of(fields: Fields) -> Mapping[str, Any]:
    """Return the stats of a plan, an output or a context's metrics.

    Raises:
        StateCorruptError: one of them is not what its readers rely on.
    """
    for name, (is_valid, what) in KNOWN.items():
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
    """Return the metrics of a run: stats by context, seconds by step, what the script left out, and its `job.state`.

    Raises:
        StateCorruptError: one of them is not what its readers rely on.
    """
    if "contexts" in fields:
        for _, stats in fields.map("contexts").maps():
            stats_of(stats)
    fields.check("seconds", is_map_of(is_text), "no map of texts")
    fields.check(LEFT_OUT, is_map_of(is_map_of(is_size)), "no map of counts")
    if STATE_KIND in fields:
        state = fields.map(STATE_KIND)
        state.check("from", _is_run_or_none, "no run as number.fence")
        state.check("names", is_texts, "no list of texts")
        if "set_in" in state:
            state.number("set_in")
    return fields.values


def is_map_of_numbers(value: object) -> bool:
    """Whether a value is a map of run numbers."""
    return isinstance(value, dict) and all(is_number(each) for each in value.values())


def _is_run_or_none(value: object) -> bool:
    return value is None or run_key_of(value) is not None
