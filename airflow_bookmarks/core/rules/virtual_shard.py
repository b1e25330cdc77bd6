"""Assign files to virtual shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.ledger.segment import bare_name, bare_names, blake2b_64
from airflow_bookmarks.core.selection.partition import is_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.rules.shard import ShardBy

_HASH_BITS, _SHARD_BITS = 64, 6  # 2 ** 6 virtual shards, by the highest bits


def virtual_shards(paths: Sequence[str], by: ShardBy) -> npt.NDArray[np.uint8]:
    """Return the virtual shard, 0 to 63, of each canonical path.

    It is the six highest bits of a hash (blake2b, 8 bytes, little-endian) of, in UTF-8,

    * `by="path"`: the whole path without its scheme, as the ledger knows the file;
    * `by="partition"`: the `name=value` folders of the path in their order, decoded and joined by `/`, so that all
      files of a partition are in one virtual shard, and equal partitions of two sources are in the same one.

    Both depend on nothing but the path: not on the machine, the roots that were listed, or what else is there.

    Raises:
        OptionError: `by="partition"`, and a path has no partition.

    Example:
        >>> virtual_shards(["/raw/month=1/a.csv", "/raw/month=1/b.csv"], "partition").tolist()
        [6, 6]
    """
    if not paths:
        return np.empty(0, np.uint8)
    names = bare_names(paths) if by == "path" else _partitions(paths)
    return (blake2b_64(names) >> np.uint64(_HASH_BITS - _SHARD_BITS)).astype(np.uint8)


def _partitions(paths: Sequence[str]) -> list[str]:
    folders = [path.rpartition("/")[0] for path in paths]
    named = {folder: _partition_of(folder) for folder in dict.fromkeys(folders)}
    nowhere = next((path for path, folder in zip(paths, folders, strict=True) if not named[folder]), None)
    if nowhere is not None:
        raise OptionError(
            f"shard_by='partition', and {nowhere!r} lies in no partition (name=value). Nothing was read or changed. "
            "Use shard_by='path', or load folders with partitions."
        )
    return [named[folder] for folder in folders]


def _partition_of(folder: str) -> str:
    return "/".join(unquote(part) for part in bare_name(folder).split("/") if is_partition(part))
