"""One commit of a Delta table, as the JSON file of its log has it.

what the commit does                     its actions                              it is
INSERT, a MERGE that matches nothing     adds                                     an append
UPDATE, DELETE, MERGE, overwrite         removes, mostly with adds                a change
RESTORE                                  adds or removes, or both                 a change: rows come back, or go
REPLACE, CLONE over a table              metaData with another id                 a change
OPTIMIZE, REORG, a compaction by hand    adds and removes without `dataChange`    no news
VACUUM, columns, properties              none of files                            no news
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Action = dict[str, Any]

_DIGITS = 16  # of the hash of a commit
# What Delta needs to read a file.
_KEPT = frozenset(
    [
        "baseRowId",
        "dataChange",
        "defaultRowCommitVersion",
        "deletionVector",
        "modificationTime",
        "partitionValues",
        "path",
        "size",
    ]
)


@dataclass(frozen=True, slots=True)
class DeltaCommit:
    """One commit.

    Attributes:
        version: The version that it made.
        fingerprint: A hash of its bytes.
        operation: What its writer calls it: "WRITE", "MERGE".
        details: The parameters of the operation.
        adds: The files that it added with new rows.
        removes: The files that it removed with their rows.
        gone: The paths of all files that it removed, also of those whose rows went to other files.
        feed: The files of its change feed; none where that follows from `adds` and `removes`.
        metadata: The metadata of the table from this version on; None: as before.
        protocol: The protocol of the table from this version on; None: as before.
        time_ms: When it was made, where the table keeps that in its commits.
        told: The text that its writer has put there, as a run of a job puts its token.
    """

    version: int
    fingerprint: str
    operation: str
    details: Mapping[str, Any]
    adds: tuple[Action, ...]
    removes: tuple[Action, ...]
    gone: frozenset[str]
    feed: tuple[Action, ...]
    metadata: Action | None
    protocol: Action | None
    time_ms: int | None
    told: str | None = None

    @property
    def has_news(self) -> bool:
        """Whether rows came, changed or went."""
        return bool(self.adds or self.removes)

    def changes_rows(self, table_id: str) -> bool:
        """Whether it did more than append rows to the table with an id, which it had before."""
        is_replaced = self.metadata is not None and self.metadata["id"] != table_id
        return self.has_news and (bool(self.removes) or is_replaced or self.operation.upper() == "RESTORE")

    def reads(self, *, changes: bool) -> tuple[Action, ...]:
        """Return the files that hold its rows: those that it added, or with `changes` those of the change feed."""
        return self.adds if not changes else self.feed or (*self.adds, *self.removes)

    def in_words(self, position: int) -> str:
        """Say what it was, to someone who has read up to version `position`."""
        if self.operation.upper() != "RESTORE":
            return f"version {self.version} ({self.operation})"
        to = self.details.get("version")
        if to is None:
            return f"version {self.version} (RESTORE to {self.details.get('timestamp')})"
        below = (
            f", which lies below the position {position}: rows that were read are gone" if int(to) < position else ""
        )
        return f"version {self.version} (RESTORE to version {to}{below})"


def actions_of(body: bytes) -> list[Action]:
    """Return the actions of a commit: one JSON object in each line.

    Raises:
        ValueError: it is something else.
    """
    actions = [json.loads(line) for line in body.splitlines() if line.strip()]
    if not all(isinstance(action, dict) for action in actions):
        raise ValueError("a line of it is no object")
    return actions


def fingerprint_of(body: bytes) -> str:
    """Return what tells a commit from another one of the same version."""
    return hashlib.sha256(body).hexdigest()[:_DIGITS]


def commit_of(version: int, body: bytes) -> DeltaCommit:
    """Return the commit that a file of the log holds.

    Raises:
        ValueError, KeyError: it holds something else.
    """
    actions = actions_of(body)
    info = _last(actions, "commitInfo") or {}
    removed = _all(actions, "remove")
    return DeltaCommit(
        version,
        fingerprint_of(body),
        str(info.get("operation", "an unnamed operation")),
        info.get("operationParameters") or {},
        tuple(lean(file) for file in _all(actions, "add") if file["dataChange"]),
        tuple(file for file in removed if file["dataChange"]),
        frozenset(file["path"] for file in removed),
        tuple(_all(actions, "cdc")),
        _last(actions, "metaData"),
        _last(actions, "protocol"),
        info.get("inCommitTimestamp"),
        info.get("userMetadata"),
    )


def _all(actions: Sequence[Action], name: str) -> list[Action]:
    return [action[name] for action in actions if action.get(name) is not None]


def _last(actions: Sequence[Action], name: str) -> Action | None:
    return next(iter(_all(actions, name)[-1:]), None)


# ---- files


def lean(file: Action) -> Action:
    """Return a file that a commit has added without values of its rows, which plans and state are not to hold.

    Of its statistics the number of rows is left: least and greatest values of columns go.
    """
    kept = {name: value for name, value in file.items() if value is not None and name in _KEPT}
    count = _row_count(file)
    return kept if count is None else {**kept, "stats": json.dumps({"numRecords": count})}


def _row_count(file: Action) -> int | None:
    stats = file.get("stats")
    count = None if not stats else json.loads(stats).get("numRecords")
    return None if count is None else int(count)


def rows_of(file: Action) -> int | None:
    """Return how many rows a file holds, without those that a deletion vector marks; None where that is not told."""
    count = _row_count(file)
    deleted = (file.get("deletionVector") or {}).get("cardinality", 0)
    return None if count is None else count - int(deleted)


def key_of(file: Action) -> tuple[str, str | None]:
    """Return what tells a file of a table from another: its path, and what marks its deleted rows."""
    vector = file.get("deletionVector")
    if vector is None:
        return file["path"], None
    return file["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"
