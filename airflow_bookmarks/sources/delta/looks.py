"""What the batches of a loop read of the log of a table once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_bookmarks.sources.delta.commit import DeltaCommit
    from airflow_bookmarks.sources.delta.snapshot import DeltaSnapshot


@dataclass(slots=True)
class DeltaLooks:
    """The commits that were read, by version, and the files of the version that a first read takes in parts.

    None of them ever changes, as long as it is the same table: each plan makes sure of that first.
    """

    commits: dict[int, DeltaCommit] = field(default_factory=dict)
    snapshot: DeltaSnapshot | None = None
