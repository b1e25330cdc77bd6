"""Callbacks: how notifiers of Airflow are called with what has changed."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, Context

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow_bookmarks.notifications.health import News

log = logging.getLogger(__name__)

Callback = Callable[[Context], Any]
"""Any notifier of Airflow, or a function that takes the context."""


def callbacks_of(notify: Callback | Sequence[Callback]) -> tuple[Callback, ...]:
    """Return one callback, or several, as a tuple.

    Raises:
        OptionError: there is none.
    """
    callbacks = (notify,) if callable(notify) else tuple(notify or ())
    if not callbacks:
        raise OptionError(f"notify={notify!r}: there is nobody to tell. Give a notifier.")
    return callbacks


def call(callbacks: Sequence[Callback], one: News, context: Context) -> None:
    """Call each with the news as `bookmark` in its context. What one raises is raised, and the rest are not called."""
    log.info("bookmark notifier: %s", one.standing.message)
    for callback in callbacks:
        # A notifier renders its fields in place: the next news would find the text of this one.
        fresh = copy.copy(callback) if isinstance(callback, BaseNotifier) else callback
        fresh({**context, "bookmark": one.as_dict()})  # type: ignore[typeddict-unknown-key]
