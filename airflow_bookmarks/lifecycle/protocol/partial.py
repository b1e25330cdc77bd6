"""A run that has landed in some of its tables only: its driver ended between two that commit by themselves, or the
second refused its rows.

no such run      rows are in all of its tables, or in none
to be settled    rows are in some; the next run stops, until a person has said what becomes of it
committed        it is taken over as it is: what has not landed counts as left out
given-up         its input is read again; what has landed is told, and stays

A sink that commits by itself takes nothing back, so no rule can make such a run whole, and none decides for a person.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import PartlyLandedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.option import Settlement
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

_HAS_LANDED, _SETTLED_AS = "has_landed", "settled_as"  # among the stats of an output


def settled(store: BookmarkStore, grant: LeaseGrant, run: Run, landed: Mapping[str, bool]) -> Run | None:
    """Return an open run as it is taken over, by what a person has decided; None if it is given up.

    Args:
        landed: of each output that commits by itself whether its rows are there; by then its token is burned, so that
            none lands any more.

    Raises:
        PartlyLandedError: rows are in some only, and nobody has decided; what was seen is stored with the run.
    """
    if all(landed.values()):
        return run
    outputs = {name: run.outputs[name] for name in landed}
    decided = next((entry.metadata.settled_as for entry in outputs.values()), None)
    if decided is None:
        store.note_outputs(
            grant, run, with_stats(run, {name: {_HAS_LANDED: is_there} for name, is_there in landed.items()})
        )
        raise PartlyLandedError(grant.job, run.key.number, *in_words(run, landed))
    if decided == "given-up":
        return None
    missing = {name: _missing(entry) for name, entry in outputs.items() if not landed[name]}
    _, left = in_words(run, landed)
    log.warning("bookmark %s: run %s counts without %s, as a person has decided", grant.job, run.key, "; ".join(left))
    return replace(run, outputs={**run.outputs, **missing})


def with_settlement(run: Run, decision: Settlement) -> dict[str, OutputEntry]:
    """Return the outputs of a run that is to be settled, with what a person has decided; empty: it is none.

    Only what a recovery has looked at can be settled: by then the tokens are burned, and nothing lands any more.
    """
    landed = landed_in(run)
    if run.state.is_open and set(landed.values()) == {True, False}:
        return with_stats(run, {name: {_SETTLED_AS: decision} for name in landed})
    return {}


def landed_in(run: Run) -> dict[str, bool]:
    """Return where a recovery has seen rows of an open run, and where none; empty: none had to say so."""
    seen = {name: entry.metadata.has_landed for name, entry in run.outputs.items()}
    return {name: has_landed for name, has_landed in seen.items() if has_landed is not None}


def with_stats(run: Run, stats: Mapping[str, Mapping[str, Any]]) -> dict[str, OutputEntry]:
    """Return outputs of a run with more stats, by name."""
    return {name: replace(run.outputs[name], stats={**run.outputs[name].stats, **more}) for name, more in stats.items()}


def in_words(run: Run, landed: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """Return the outputs that have landed, and those that have not, each with its target."""
    shown = {name: f"output {name!r} ({run.outputs[name].target})" for name in sorted(landed)}
    return [text for name, text in shown.items() if landed[name]], [t for name, t in shown.items() if not landed[name]]


def _missing(entry: OutputEntry) -> OutputEntry:
    """Return an output that has not landed, as the commit has it: without rows."""
    return replace(entry, stats={**entry.stats, "rows": 0, "files": 0, "bytes": 0}, is_left_out=True)
