"""What a stage writes to. Scene, script and checks know no more of its kind than this."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.sources.upstream.rewind import OnRewind
    from airflow_bookmarks.spark import BookmarkedJob

OUTPUT, CONTEXT = "lines", "new"
_FILES = LocalFileSystem()


class Target(Protocol):
    """A target of one kind. `points` are those to which a run comes that writes to it."""

    @property
    def points(self) -> Sequence[Failpoint]:
        """The points of the protocol to which a run that writes to it comes."""
        ...

    def write(self, bookmarked: BookmarkedJob, lines: DataFrame) -> None:
        """In the script of the stage: write what it has read."""
        ...

    def read(self, bookmarked: BookmarkedJob, job: str, on_rewind: OnRewind) -> DataFrame:
        """In the script of the stage behind: return what is new; `job` is the one that writes here."""
        ...

    def rows(self) -> Counter[str]:
        """Return the lines that a reader sees, without Spark."""
        ...

    def staged(self) -> list[str]:
        """Return the names of what is staged for it, without Spark."""
        ...


@dataclass(frozen=True, slots=True)
class TextFiles:
    """A folder of text files."""

    folder: Path

    @property
    def points(self) -> Sequence[Failpoint]:
        """All."""
        return tuple(Failpoint)

    def write(self, bookmarked: BookmarkedJob, lines: DataFrame) -> None:
        """Append the lines."""
        bookmarked.write(lines, OUTPUT).text(str(self.folder))

    def read(self, bookmarked: BookmarkedJob, job: str, on_rewind: OnRewind) -> DataFrame:
        """Read what the runs of the job have published."""
        return bookmarked.read(CONTEXT).upstream(job, on_rewind=on_rewind)

    def rows(self) -> Counter[str]:
        """Return the lines of all files that are not hidden."""
        if not self.folder.exists():
            return Counter()
        seen = _FILES.list(str(self.folder), recursive=True).files.paths
        return Counter(line for each in seen for line in Path(each).read_text().splitlines())

    def staged(self) -> list[str]:
        """Return the files that are staged."""
        return [str(path) for path in self.folder.glob("_bookmarks/**/*") if path.is_file()]
