"""Read, show and set the values of `job.state` between runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.job_state import (
    SET_STATE,
    STATE_CONTEXT,
    STATE_KIND,
    decode_states,
    encode_states,
    parse_state,
    shown_states,
    with_state,
)
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import ContextState, RunKey
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.history.timeline_switch import switch_set
from airflow_bookmarks.lifecycle.state.positions import stored_position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch

_NO_RUN = RunKey(0, 0)  # name of a state that was set by hand before any run set one


def state_values(store: BookmarkStore, job: str, contexts: Mapping[str, ContextState]) -> dict[str, Any]:
    """Return the values of `job.state` in some state of a job; empty where there are none.

    Raises:
        StateCorruptError: they are gone, or damaged.
    """
    payload = stored_position(store, job, STATE_CONTEXT, contexts.get(STATE_CONTEXT))
    return {} if payload is None else decode_states(store.blobs.get(payload))


def shown_state(store: BookmarkStore, job: str, contexts: Mapping[str, ContextState]) -> dict[str, str]:
    """Return the values of `job.state` as short JSON texts for people.

    Values that can't be read are replaced by the reason, under a name that no value has, so that the rest is still
    shown.
    """
    try:
        return shown_states(state_values(store, job, contexts))
    except StateCorruptError as error:
        return {STATE_CONTEXT: f"can't be read: {redacted(str(error))}"}


def state_difference(
    a: Mapping[str, str], b: Mapping[str, str], names: tuple[str, str] = ("before", "after")
) -> dict[str, dict[str, str | None]]:
    """Return how two shown states differ, by name of the value; equal values are left out."""
    one, other = names
    return {name: {one: a.get(name), other: b.get(name)} for name in sorted({*a, *b}) if a.get(name) != b.get(name)}


def state_moved_by(
    store: BookmarkStore, job: str, head: Head, switch: TimelineSwitch
) -> dict[str, dict[str, str | None]]:
    """Return the values of `job.state` that a switch changes, before and after."""
    before, now = head.contexts.get(STATE_CONTEXT), switch.contexts.get(STATE_CONTEXT)
    if before == now:
        return {}
    return state_difference(shown_state(store, job, head.contexts), _shown_after(store, job, switch))


def _shown_after(store: BookmarkStore, job: str, switch: TimelineSwitch) -> dict[str, str]:
    payload = switch.positions.get(STATE_CONTEXT)
    if payload is None:
        return shown_state(store, job, switch.contexts)
    body = switch.bodies[0] if payload.inline is None else payload.inline
    return shown_states(decode_states(body))


def switch_state(history: HistorySnapshot, name: str, text: str, event: AuditEvent) -> TimelineSwitch:
    """Return the switch that sets one value of `job.state` from a JSON text; it undoes no run.

    The event has only the name, because the value may be a secret; the line that the switch starts has the value.

    Raises:
        OptionError: the text is no JSON, or all values together have more than 16 KB. NameInvalidError.
    """
    if not name:
        raise OptionError("a set-state needs the name of a value. Nothing was changed.")
    head = history.head
    value = parse_state(check_name("state", name), text)
    values = with_state(state_values(history.store, history.job, head.contexts), name, value)
    state = head.contexts.get(STATE_CONTEXT) or ContextState(STATE_KIND, STATE_KIND, _NO_RUN)
    position = Position(encode_states(values))
    return switch_set(history, STATE_CONTEXT, state, position, {**event, "name": name}, kind=SET_STATE)
