"""What the batches of a loop read of the log of a table once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.sources.delta.commit import Action, DeltaCommit
    from airflow_bookmarks.sources.delta.snapshot import DeltaSnapshot


@dataclass(slots=True)
class DeltaLooks:
    """The commits that were read, by version, and the files of the version that a first read takes in parts.

    `by_value` are files by their value in a partition column: those of the versions up to one, after another (None: all
    of the table).

    None of them ever changes, as long as it is the same table: each plan makes sure of that first.
    """

    commits: dict[int, DeltaCommit] = field(default_factory=dict)
    snapshot: DeltaSnapshot | None = None
    by_value: dict[tuple[int, int | None], Mapping[str | None, Sequence[Action]]] = field(default_factory=dict)
