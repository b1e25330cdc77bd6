"""Objects of the state: files that are written once and read whole, on any supported file system."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import IO, TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceMissingError, StateCorruptError, StoreAccessError
from airflow_bookmarks.files.access import given_access, reached_by
from airflow_bookmarks.files.filesystem import store_of
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.files.opener import open_any_filesystem
from airflow_bookmarks.files.s3.settings import S3_SCHEMES, S3Access, S3Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boto3.session import Session

    from airflow_bookmarks.files.filesystem import ChangeableFileSystem


class FileObjects:
    """Objects as files; implements `airflow_bookmarks.store.object_store.ObjectStore`. Safe between threads.

    Args:
        session: the boto3 session whose credentials reach S3, e.g. those of an Airflow connection; None: S3 is reached
            as the job does that opens the store; where no job opens it, as each job that works with it does.
    """

    def __init__(self, session: Session | None = None) -> None:
        self._session = session
        self._access = given_access()

    def put(self, uri: str, data: bytes) -> None:
        """Write a file whole, with the folders above it; a local one is for its owner alone (`private_file`)."""
        files = LocalFileSystem(is_private=True) if store_of(uri) == "file" else self._files(uri)
        files.write(files.canonical(uri), io.BytesIO(data))

    def get(self, uri: str, most_bytes: int) -> bytes:
        """Return the content of a file, up to one byte more than `most_bytes`.

        Raises:
            FileNotFoundError: it is not there. StateCorruptError: it is no regular file.
        """
        files = self._files(uri)
        path = files.canonical(uri)
        with _open_regular(path) if path.startswith("/") else files.open(path) as file:
            return file.read(most_bytes + 1)

    def size(self, uri: str) -> int | None:
        """Return how many bytes a file has; None if it is not there."""
        files = self._files(uri)
        (info,) = files.stat([files.canonical(uri)])
        return None if info is None else info.size_bytes

    def delete(self, uri: str) -> None:
        """Delete a file; no error when it is gone. That it is an object of the table its caller has shown."""
        files = self._files(uri)
        files.delete(files.canonical(uri))

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of the files in a folder; none when it is not there."""
        files = self._files(folder)
        try:
            found = files.list(files.canonical(folder))
        except SourceMissingError:
            return []
        return [path.rpartition("/")[2] for path in found.files.paths]

    def folders(self, folder: str) -> Sequence[str]:
        """Return the names of the folders in a folder; none when it is not there."""
        files = self._files(folder)
        return files.folders(files.canonical(folder))

    def remove(self, folder: str) -> None:
        """Remove a folder with everything in it. That it is an artifact of the table its caller has shown."""
        files = self._files(folder)
        files.remove(files.canonical(folder))

    def _files(self, uri: str) -> ChangeableFileSystem:
        scheme = uri.partition("://")[0]
        if self._session is None or scheme not in S3_SCHEMES:
            with reached_by(self._access):
                return open_any_filesystem(uri)
        from airflow_bookmarks.files.s3.filesystem import S3FileSystem

        # Asked for each time: those of a role change while a process lives. While they stay, so do the clients.
        found = self._session.get_credentials()
        if found is None:
            raise StoreAccessError(
                f"the AWS connection leads to no credentials for {uri!r}. Nothing was read or changed. Give it a key, "
                "a role or a profile."
            )
        keys = found.get_frozen_credentials()
        access = S3Access(
            region=self._session.region_name,
            access_key=keys.access_key,
            secret_key=keys.secret_key,
            session_token=keys.token,
        )
        return S3FileSystem(S3Settings(access))


# Do not follow a link, and do not wait for the writer of a pipe. Windows has neither flag.
_CAUTIOUSLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _open_regular(path: str) -> IO[bytes]:
    """Open a local file that is one: no pipe, device, folder or link."""
    try:
        handle = os.open(path, _CAUTIOUSLY)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _no_file(path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _no_file(path)
    return os.fdopen(handle, "rb")


def _no_file(path: str) -> StateCorruptError:
    return StateCorruptError(
        f"{path!r}, where state lies, is no regular file but a pipe, a device, a folder or a link. Nothing of it was "
        "read, and nothing was changed. Put the file back from a backup, or reset the job."
    )
