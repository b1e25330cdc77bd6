"""The job that is read, as its consumer finds it in the store of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import JobUnknownError, SourceMissingError

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class UpstreamJob:
    """Job `name`, which job `consumer` reads."""

    store: BookmarkStore
    consumer: str
    name: str

    @property
    def what(self) -> str:
        """Both, as errors name them."""
        return f"job {self.consumer!r} reads upstream {self.name!r}"

    def head(self) -> Head:
        """Return its head as it is now.

        Raises:
            SourceMissingError: it has no bookmark yet.
        """
        try:
            return self.store.head(self.name)
        except JobUnknownError as error:
            raise SourceMissingError(
                f"{self.what}, and namespace {self.store.namespace!r} has no such bookmark yet. Nothing was read or "
                "changed. Check the name ('airflow-bookmarks list'), or run the upstream first (a BookmarkSensor waits "
                "for it)."
            ) from error
