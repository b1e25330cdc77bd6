"""The lines that AWS Glue logs of partitions and their files, word by word: people search logs for them.

The loggers have the names of Glue's classes. The lines and levels follow AWS's blog on job bookmarks.
"""

from __future__ import annotations

import json
import logging
import sys
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE_LOG = logging.getLogger("HadoopDataSource")
LISTER_LOG = logging.getLogger("PartitionFilesListerUsingBookmark")


@dataclass(frozen=True, slots=True)
class LoggedPartition:
    """A partition as the lines name it.

    Args:
        values: the partition's values by column, in the order of the table.
        path: the folder of its files.
        created_ms: when the catalog got it, in milliseconds since 1970; 0 where that is not known.
    """

    path: str
    values: Mapping[str, object] = field(default_factory=dict)
    created_ms: int = 0

    def __str__(self) -> str:
        # Glue shows the identity of an object here. Ours is that of the values, the same in each run.
        record = f"com.amazonaws.services.glue.DynamicRecord@{zlib.crc32(self._values().encode()):08x}"
        return f"DynamicFramePartition({record},{self.path},{self.created_ms})"

    def _values(self) -> str:
        return json.dumps({name: str(value) for name, value in self.values.items()}, ensure_ascii=False)

    def log_skipped(self) -> None:
        """Log that the partition has nothing new."""
        SOURCE_LOG.warning(
            "Skipping Partition %s has no new files detected @ %s or path does not exist", self._values(), self.path
        )

    def log_new(self, files: int) -> None:
        """Log that no earlier run knew the partition, and how many files it has."""
        LISTER_LOG.info("Found new partition %s with %d files", self, files)

    def log_initial(self, kept: int, listed: int) -> None:
        """Log what the first look, by time, keeps of the files that were listed."""
        LISTER_LOG.info(
            "After initial job bookmarks filter, processing %.2f%% of %d files in partition %s",
            _percent(kept, listed),
            listed,
            self,
        )

    def log_final(self, read: int, kept: int) -> None:
        """Log what is read of the files that the first look has kept."""
        LISTER_LOG.info(
            "After final job bookmarks filter, processing %.2f%% of %d files in partition %s",
            _percent(read, kept),
            kept,
            self,
        )


def show_listing_log() -> None:
    """Send these lines to stderr if logging is not configured, with the names of their loggers."""
    for logger in (SOURCE_LOG, LISTER_LOG):
        if not logger.handlers and not logging.getLogger().handlers:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
