"""The connection of the page: the hook, with timeouts for interactive use, opened once for many requests."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf

from airflow_bookmarks.core.errors import OptionError, StoreAccessError, StoreError
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.hooks.database import AirflowAccess
from airflow_bookmarks.store.bookmark_store import store_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from boto3.session import Session

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_CONNECT_S, _READ_S = 2, 3
# A second attempt begins when the first one has run out, and a third one does not.
_OUTAGE_LIMIT_S = 3.5
_KEPT_S = 60.0


def configured_connection() -> str:
    """Return which connection the page shows: `[bookmarks] conn_id`, which no request can change."""
    return conf.get("bookmarks", "conn_id", fallback=DEFAULT_CONNECTION) or DEFAULT_CONNECTION


class PageHook(BookmarkHook):
    """The hook as the API server uses it: a table that does not answer is given up after seconds, not a minute."""

    def open_store(self) -> BookmarkStore:
        """Open the store anew, with short limits."""
        address = self.address
        if address.scheme != "dynamodb":
            return super().open_store()
        from boto3.session import Session

        from airflow_bookmarks.store.backends.dynamodb import DynamoTable

        session: Any = _Hasty(self._session or Session())
        table = DynamoTable(
            name=address.table,
            region=address.region,
            endpoint=address.endpoint,
            insecure=address.insecure,
            session=session,
            outage_limit_s=_OUTAGE_LIMIT_S,
        )
        store = store_on(table, address, session=self._session)
        store.databases = AirflowAccess()
        return store


class _Hasty:
    """A session whose clients wait for seconds only."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def client(self, service: Any, *, config: Any, **where: Any) -> Any:
        from botocore.config import Config

        limits = Config(connect_timeout=_CONNECT_S, read_timeout=_READ_S)
        return self._session.client(service, config=config.merge(limits), **where)


class Opened:
    """A hook that is opened on first use, and again after a minute or after an error of the store.

    So an edited connection, or expired credentials, need no restart of the API server.

    Args:
        make: makes the hook.
        monotonic: the clock, in seconds.
    """

    def __init__(
        self,
        make: Callable[[], BookmarkHook] = lambda: PageHook(configured_connection()),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._monotonic = make, monotonic
        self._lock = threading.Lock()
        self._hook: BookmarkHook | None = None
        self._until = 0.0

    def hook(self) -> BookmarkHook:
        """Return the hook, with its store open.

        Raises:
            StoreAccessError: the connection is missing, or says something unknown: no fault of the request.
        """
        with self._lock:
            if self._hook is not None and self._monotonic() < self._until:
                return self._hook
            hook = self._make()
            try:
                hook.get_conn()
            except OptionError as error:
                raise StoreAccessError(str(error)) from error
            self._hook, self._until = hook, self._monotonic() + _KEPT_S
            return hook

    def forget(self) -> None:
        """Open the hook anew for the next request."""
        with self._lock:
            self._hook = None

    def watch(self) -> _Watch:
        """Return a context that forgets the hook when the store fails in it."""
        return _Watch(self)


class _Watch:
    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __enter__(self) -> BookmarkHook:
        return self._opened.hook()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None and issubclass(kind, StoreError):
            self._opened.forget()
