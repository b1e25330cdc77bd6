"""Open the file system that a path lies on, by its scheme.

Each is imported when a path of its scheme is opened: its dependencies may not be installed. S3 and HDFS are reached as
`files.access` says at that moment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.redaction import has_user_info
from airflow_bookmarks.files.access import present_access, reached_by
from airflow_bookmarks.files.filesystem import ABFS_SCHEMES, store_of
from airflow_bookmarks.files.permission import WatchedFileSystem, present_permission
from airflow_bookmarks.files.s3.settings import S3_SCHEMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.files.access import FileAccess
    from airflow_bookmarks.files.filesystem import ChangeableFileSystem, FileSystem


def _open_local(scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.local import LocalFileSystem

    return LocalFileSystem()


def _open_s3(scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.s3.filesystem import S3FileSystem

    return S3FileSystem(present_access().s3, scheme)


def _open_hdfs(scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.hadoop.hdfs import open_hdfs

    return open_hdfs(present_access().hdfs, scheme)


def _open_gs(scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.hadoop.gs import open_gs

    return open_gs()


def _open_abfs(scheme: str) -> ChangeableFileSystem:
    from airflow_bookmarks.files.hadoop.abfs import open_abfs

    return open_abfs(scheme)


_HDFS_SCHEMES = ("hdfs", "webhdfs", "swebhdfs")

_OPENERS: dict[str, Callable[[str], ChangeableFileSystem]] = {
    "": _open_local,
    "file": _open_local,
    **dict.fromkeys(S3_SCHEMES, _open_s3),
    **dict.fromkeys(_HDFS_SCHEMES, _open_hdfs),
    "gs": _open_gs,
    **dict.fromkeys(ABFS_SCHEMES, _open_abfs),
}


def register_filesystem(scheme: str, opener: Callable[[], ChangeableFileSystem]) -> None:
    """Make `open_filesystem` answer with `opener()` for paths of a scheme; its canonical paths begin with it."""
    _OPENERS[scheme] = lambda _: opener()


_ONE_SLASH = re.compile(r"(file|dbfs|wasbs?):", re.IGNORECASE)  # of other names with a colon each may be a folder
_INSTEAD = {"dbfs": " name the store that lies below DBFS, or a volume by its path (/Volumes/...);"}


def open_filesystem(path: str) -> FileSystem:
    """Return the file system that a path lies on, restricted to what this process may look at.

    Raises:
        OptionError: the path is empty, or its scheme has no file system here.
        LookRefusedError: this process may not look there.
    """
    permission = present_permission()
    if permission is None:
        return open_any_filesystem(path)
    permission.check(path)
    return WatchedFileSystem(open_any_filesystem(path), permission)


def open_to_change(path: str) -> ChangeableFileSystem:
    """Return the file system that a path lies on, also to move and delete.

    Raises:
        OptionError: the path is empty, or its scheme has no file system here.
        LookRefusedError: this process may not look there.
    """
    permission = present_permission()
    if permission is not None:
        permission.check(path)
    return open_any_filesystem(path)


def open_any_filesystem(path: str) -> ChangeableFileSystem:
    """Return the file system that a path lies on, without restrictions: for the place of the state itself.

    Raises:
        OptionError: the path is empty, no text that names a file, has a password in it, or its scheme has no file
            system here.
    """
    _check_text(path)
    if not path or not path.strip():
        raise OptionError("the path is empty. Nothing was read or changed. Give the folder or file to read or write.")
    scheme, sign, _ = path.partition("://")
    if has_user_info(path):
        # The text is not repeated: a path is recorded in state, and appears in logs and errors.
        raise OptionError(
            f"a path of {scheme}:// has a user and a password before its host. Nothing was read or changed. Leave them "
            "out; give credentials by the environment, a role or Spark's configuration."
        )
    if not sign:
        single = _ONE_SLASH.match(path)
        scheme = "" if single is None else single[1]
    if scheme not in _OPENERS:
        raise OptionError(
            f"{path!r}: no file system for scheme {scheme!r};{_INSTEAD.get(scheme, '')} this version "
            "knows local paths (/folder or file:///folder), S3 (s3a://bucket/folder), HDFS "
            "(hdfs://name-node/folder), Google Cloud Storage "
            "(gs://bucket/folder) and Azure (abfss://container@account.dfs.core.windows.net/folder). Nothing was read "
            "or changed."
        )
    return _OPENERS[scheme](scheme)


# Python spells bytes of a local name that are no UTF-8 by halves of characters from U+DC80 to U+DCFF; by no others.
_IN_NO_NAME = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")


def _check_text(path: object) -> None:
    """Make sure that a path is text that a file system can be asked about.

    Raises:
        OptionError: it is something else, or has a null character or half a character (a lone surrogate).
    """
    if not isinstance(path, str):
        raise OptionError(
            f"path {path!r} is a {type(path).__name__}, and a path is text. Nothing was read or changed. Give it as "
            "text, such as str(path)."
        )
    found = _IN_NO_NAME.search(path)
    if found is not None:
        raise OptionError(
            f"{path!r} can't be a path: no name has the character U+{ord(found[0]):04X}. Nothing was read or changed. "
            "Look where this path comes from, and leave the character out."
        )


def open_state_files(path: str, access: FileAccess | None) -> FileSystem:
    """Return the file system that artifacts of the state lie on, reached by `access`: to list and read them.

    Raises:
        OptionError: as `open_any_filesystem`.
    """
    with reached_by(access):
        return open_any_filesystem(path)


def open_one_filesystem(paths: Sequence[str]) -> FileSystem:
    """Return the file system that all of these paths lie on.

    Raises:
        OptionError: they lie on several, or one of them is empty or of a scheme that is not known here.
    """
    files, *_ = [open_filesystem(path) for path in paths]
    first_of: dict[str, str] = {}
    for path in paths:
        first_of.setdefault(store_of(path), path)
    if len(first_of) > 1:
        first, other, *_ = first_of.values()
        raise OptionError(
            f"{first!r} and {other!r} lie on different file systems, and one read reads one of them. Nothing was read "
            "or changed. Read each under a context of its own and union the frames; of an upstream whose target moved, "
            "read up to its last run before that (until=), then the rest."
        )
    return files


def canonical_folder(location: str) -> str:
    """Return a folder as paths of this package are, or as it is where only Spark reaches it."""
    try:
        return open_filesystem(location).canonical(location)
    except OptionError:
        return location
