"""How S3 and HDFS are reached: as a job's own session says, or where no job says anything, as the machine does.

The settings hold within a `with`, for the thread or task that is in it. Each job enters its own for each of its calls,
so two jobs in one process reach two endpoints. A file system keeps the settings with which it was opened.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from airflow_bookmarks.files.s3.settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_bookmarks.files.hadoop.hdfs_settings import HdfsSettings

_Method = TypeVar("_Method", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class FileAccess:
    """How file systems are reached. Without arguments: S3 as boto3, and HDFS as Hadoop's configuration says."""

    s3: S3Settings = field(default_factory=S3Settings)
    hdfs: HdfsSettings | None = None


class HasAccess(Protocol):
    """Whoever reaches files as its own settings say."""

    @property
    def access(self) -> FileAccess:
        """How it reaches them."""
        ...


_GIVEN: ContextVar[FileAccess | None] = ContextVar("bookmarks_file_access", default=None)
_OF_THE_MACHINE = FileAccess()


def given_access() -> FileAccess | None:
    """Return the settings in force; None: those of the machine."""
    return _GIVEN.get()


def present_access() -> FileAccess:
    """Return the settings in force, or those of the machine."""
    return _GIVEN.get() or _OF_THE_MACHINE


@contextmanager
def reached_by(access: FileAccess | None) -> Iterator[None]:
    """Reach files as `access` says, within the block; None: as before it."""
    if access is None:
        yield
        return
    before = _GIVEN.set(access)
    try:
        yield
    finally:
        _GIVEN.reset(before)


def by_own_access(method: _Method) -> _Method:
    """Let a method reach files as the `access` of its object says, in whatever thread it is called."""

    @wraps(method)
    def within(self: HasAccess, *args: Any, **kwargs: Any) -> Any:
        with reached_by(self.access):
            return method(self, *args, **kwargs)

    return cast("_Method", within)
