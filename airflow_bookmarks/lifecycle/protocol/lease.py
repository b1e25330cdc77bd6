"""Keep the lease: a thread renews it while the driver works. This is for liveness only; safety is in the fence."""

from __future__ import annotations

import logging
import threading
import time
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import FencedError, StoreError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.protocol.failpoint import FaultHook, no_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

LEASE_TIME = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """What a run uses of its machine: time, sleep, threads, and the fault hook of tests.

    `wait` waits for an event up to so many seconds and returns whether it was set, in the thread of the renewer.
    """

    clock: Callable[[], datetime] = utc_now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    start_thread: Callable[[Callable[[], None]], None] | None = None
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    at: FaultHook = no_fault
    lease_time: timedelta = field(default=LEASE_TIME)


class Renewer:
    """Renews the lease of a holding every quarter of its time until stopped or fenced."""

    def __init__(self, store: BookmarkStore, environment: RunEnvironment) -> None:
        self._store, self._environment = store, environment
        self._grant: LeaseGrant | None = None
        self._stop = threading.Event()
        self.fenced: FencedError | None = None

    def start(self, grant: LeaseGrant) -> None:
        """Begin to renew the lease of `grant`."""
        self._grant = grant
        if self._environment.start_thread is not None:
            self._environment.start_thread(self._run)
        else:
            threading.Thread(target=copy_context().run, args=(self._run,), name="bookmark-lease", daemon=True).start()

    def switch(self, grant: LeaseGrant) -> None:
        """Go on with another holding of the same job (the next fence of the same execution)."""
        self._grant = grant

    def rest(self) -> None:
        """Renew nothing until `switch`: a transaction of this run is about to replace the holding."""
        self._grant = None

    def stop(self) -> None:
        """End renewing; the lease then runs out by itself unless it is released."""
        self._stop.set()

    def _run(self) -> None:
        while not self._environment.wait(self._stop, self._environment.lease_time.total_seconds() / 4):
            self.renew_once()
            if self.fenced is not None:
                return

    def renew_once(self) -> None:
        """Renew now; a store that does not answer is tried again next time; a lost fence is kept for the run to see."""
        grant = self._grant
        if grant is None or self._stop.is_set():
            return
        try:
            self._store.renew(grant, self._environment.lease_time)
        except FencedError as error:
            if grant is self._grant and not self._stop.is_set():
                self.fenced = error
                log.error("bookmark %s: %s", grant.job, error)
        except StoreError as error:
            if self._stop.is_set():
                return
            log.warning("bookmark %s: the lease could not be renewed, trying again: %s", grant.job, error)
