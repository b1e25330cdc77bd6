"""Files in Azure Data Lake Storage and Azure Blob Storage, through adlfs."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.hadoop.filesystem import HadoopFileSystem, HadoopPath


class AbfsFileSystem(HadoopFileSystem):
    """Files in a container of a storage account; `abfs` and `abfss` are one path."""

    schemes = ("abfss", "abfs")
    protocol = "abfs"
    package = "adlfs"
    example = "abfss://container@account.dfs.core.windows.net/folder"

    def authority(self, text: str, path: str) -> str:
        """Return container and account."""
        container, sign, host = text.partition("@")
        if not (container and sign and host):
            raise OptionError(
                f"{path!r} names no container and account. Nothing was read or changed. Write it as {self.example}."
            )
        return text

    def options(self, authority: str) -> Mapping[str, Any]:
        """Return the account; its key, or identity, comes from the environment, as adlfs reads it."""
        host = authority.partition("@")[2]
        return {"account_name": host.partition(".")[0], "anon": False}

    def inner(self, at: HadoopPath) -> str:
        """Return the container and the name of the file."""
        return f"{at.authority.partition('@')[0]}{at.path}".rstrip("/")

    def time_ms(self, info: Mapping[str, Any]) -> int:
        """Return when the file was changed last."""
        return int(info["last_modified"].timestamp() * 1000)

    def etag(self, info: Mapping[str, Any]) -> str | None:
        """Return Azure's etag: another one after each write, of the same content too."""
        etag = info.get("etag")
        return None if etag is None else str(etag).strip('"')

    def copy(self, here: HadoopPath, there: HadoopPath) -> None:
        """Copy a file by way of this machine's disk.

        The store's own copy may be under way still when it is answered, and adlfs does not tell when it is whole: the
        source would be deleted under it.
        """
        with tempfile.TemporaryDirectory(prefix="bookmark-abfs-") as folder:
            kept = str(Path(folder) / "file")
            self._ask(here, lambda fs: fs.get_file(self.inner(here), kept))
            # Writing needs no source. A publisher that slept here while another one moved the file, and a later run
            # replaced it, would bring it back; so this raises FileNotFoundError where the source went.
            self._info(here)
            self.put(there, kept)

    def put(self, at: HadoopPath, local: str) -> None:
        """Write a file of this machine; adlfs overwrites only when asked to."""
        self._ask(at, lambda fs: fs.put_file(local, self.inner(at), overwrite=True))

    def other_errors(self) -> tuple[type[Exception], ...]:
        """Return what Azure's library raises."""
        return (importlib.import_module("azure.core.exceptions").AzureError,)


@lru_cache(maxsize=2)
def open_abfs(scheme: str) -> AbfsFileSystem:
    """Return Azure's file system, with its connections."""
    return AbfsFileSystem(scheme)


# A child has connections of its own: on those of its parent their answers would be mixed up.
os.register_at_fork(after_in_child=open_abfs.cache_clear)
