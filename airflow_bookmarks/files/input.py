"""Decide what of a listing is input: Spark's rules for names and folders, the same on every file system."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_bookmarks.core.selection.partition import is_partition
from airflow_bookmarks.core.selection.reason import HIDDEN, MARKER, NESTED, SPECIAL

_OLD_MARKER = "_$folder$"


def is_hidden(name: str) -> bool:
    """Whether Spark ignores a file with this name.

    Example:
        >>> [is_hidden(name) for name in ("_SUCCESS", ".part.crc", "_year=2013", "part-0.csv")]
        [True, True, False, False]
    """
    # Spark's rule (PartitioningAwareFileIndex): `_column=value` is a partition, other `_names` and `.names` are not
    # data.
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


@dataclass(slots=True)
class Sieve:
    """Tells input from what is not, for stores that list all files below a root at once, by names relative to it.

    A hidden folder counts as one entry, as on a file system whose listing does not enter it.
    """

    recursive: bool
    counts: dict[str, int] = field(default_factory=dict)
    _verdicts: dict[str, str | None] = field(default_factory=dict)
    _hidden_folders: set[str] = field(default_factory=set)

    def takes(self, name: str) -> bool:
        """Whether the file `name`, relative to the root, is input; count it if it is not."""
        folder, slash, own = name.rpartition("/")
        reason = self._folder(folder) if slash else None
        if reason is None and own and own[0] not in "._" and own[-1] not in "$_":  # nearly all of them
            return True
        if reason is HIDDEN:
            return False  # counted with its folder
        if not own or own.endswith(_OLD_MARKER):
            reason = MARKER
        elif is_hidden(own):
            reason = HIDDEN
        if reason is not None:
            self.counts[reason] = self.counts.get(reason, 0) + 1
        return reason is None

    def hides(self, folder: str) -> bool:
        """Whether a folder, relative to the root, is hidden; count it if it is."""
        return self._folder(folder) is HIDDEN

    def _folder(self, folder: str) -> str | None:
        if folder not in self._verdicts:
            self._verdicts[folder] = self._judge(folder)
        return self._verdicts[folder]

    def _judge(self, folder: str) -> str | None:
        parts = folder.split("/")
        for depth, part in enumerate(parts, 1):
            if is_hidden(part):
                hidden = "/".join(parts[:depth])
                if hidden not in self._hidden_folders:
                    self._hidden_folders.add(hidden)
                    self.counts[HIDDEN] = self.counts.get(HIDDEN, 0) + 1
                return HIDDEN
        if not all(parts):
            return SPECIAL
        return None if self.recursive or all(map(is_partition, parts)) else NESTED
