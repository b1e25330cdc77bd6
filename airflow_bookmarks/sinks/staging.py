"""Stage outputs: where a run stages them, and what becomes of them at the publish."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import PublishError, SourceMissingError
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.rules.emptiness import WHEN_EMPTY
from airflow_bookmarks.core.rules.mode import Mode as Mode
from airflow_bookmarks.core.run import FILES_SINK
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.reason import HIDDEN
from airflow_bookmarks.files.filesystem import Listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.files.filesystem import FileSystem

OnUnknownRuns = Literal["error", "keep"]

_MARK_OF_SPARK = "_SUCCESS"
_PUBLISHED_NAME = re.compile(r"run-\d+\.\d+-.+")


def published_by_runs(paths: Iterable[str]) -> list[str]:
    """Return the files in a target that runs published: their names carry number and fence of the run."""
    return [path for path in paths if _PUBLISHED_NAME.fullmatch(path.rpartition("/")[2])]


@dataclass(frozen=True, slots=True)
class StagingRequest:
    """What a sink asks to be stored before it writes.

    `target` is canonical; `staging` is where to stage instead of below the target (None: below it); `stats` are kept
    with the output for those who read it: format, partition columns, reading options. `when_empty` is what becomes of
    it in a run without new input (None: see `core.emptiness.Increment.publishes`). `on_unknown_runs` is whether a first
    run is stopped by files of runs in the target that the store does not know (`lifecycle.run.checks.unknown_run`).
    `overwrites_published`: a pause or disable run may replace files there that runs have published.
    """

    sink: str
    target: str
    staging: str | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    when_empty: WhenEmpty | None = None
    on_unknown_runs: OnUnknownRuns = "keep"
    overwrites_published: bool = False

    @property
    def metadata(self) -> OutputMetadata:
        """What code decides on among what is stored with the output."""
        return OutputMetadata.of_stats(stats_of(self))


@dataclass(frozen=True, slots=True)
class Staged:
    """What is staged: pairs (staged file, name in the target), files that the publish deletes, and counts.

    `rows` is None where they were not counted; `schema` is the JSON of what was written; `files` are the staged files
    in the order of the moves (None: not looked at). `removed_keys` are how many of the rows are the delete set of an
    upsert (None: it has none). `made_from` are the contexts that it was made from, as far as
    that is known. `figures` are what else the record says of rows that have landed by themselves. `purged` are those of
    the `deletes` that go only as long as they are as they were listed.
    """

    moves: Sequence[tuple[str, str]]
    deletes: Sequence[str] = ()
    rows: int | None = None
    bytes: int = 0
    schema: str | None = None
    files: Listing | None = None
    made_from: Sequence[str] = ()
    removed_keys: int | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    purged: Sequence[FileInfo] = ()


def stats_of(request: StagingRequest) -> dict[str, Any]:
    """Return the stats that are stored with an output before its write."""
    said = {} if request.when_empty is None else {WHEN_EMPTY: request.when_empty}
    return {**request.stats, **said}


def collect_staged(
    files: FileSystem,
    folder: str,
    target: str,
    token: str,
    mode: Mode,
    *,
    rows: int | None,
    schema: str | None,
    partition_by: Sequence[str] = (),
) -> Staged:
    """List what was staged in `folder`, and say what publishing it to `target` moves and deletes.

    `token` becomes part of each published name, so that no two runs or revisions ever share one. The delete list is
    what the target holds now: for an overwrite of partitions, in the partitions that were written, with all folders
    below them, as Spark itself replaces a partition. What is hidden in them stays: no reader sees it.

    Raises:
        PublishError: what was written is gone, or can't be published as it is.
    """
    try:
        listed = files.list(folder, recursive=True)
    except SourceMissingError:  # Spark writes no folder for a frame without partitions
        listed = Listed(Listing.of([]))
    listing = listed.files
    hidden = listed.skipped.get(HIDDEN, 0)
    # Listing each folder is a request for each in an object store: only if more is hidden than Spark's mark.
    if hidden > 1 or (hidden == 1 and files.stat([f"{folder}/{_MARK_OF_SPARK}"])[0] is None):
        _refuse_hidden_partitions(files, folder)
    if rows and not len(listing):
        raise PublishError(
            f"{rows} rows were written to {folder!r}, and no file is there. Nothing was committed or published. "
            "Somebody else removed what was staged, or two stores have the same namespace, job and target: give each a "
            "namespace of its own."
        )
    if partition_by:
        _check_partitioned(folder, listing.paths, partition_by)
    moves = [(path, _published(path[len(folder) + 1 :], target, token)) for path in listing.paths]
    deletes: list[str] = []
    if mode is Mode.OVERWRITE:
        deletes = _present(files, target)
    elif mode is Mode.OVERWRITE_PARTITIONS:
        partitions = sorted({published.rpartition("/")[0] for _, published in moves})
        present: dict[str, list[str]] = {}
        files.concurrency.each(lambda partition: _present(files, partition), partitions, present.__setitem__)
        deletes = [path for partition in partitions for path in present[partition]]
    return Staged(moves, deletes, rows, listing.total_bytes, schema, listing)


def _check_partitioned(folder: str, paths: Sequence[str], partition_by: Sequence[str]) -> None:
    # Taken for a partition, the target itself would be replaced.
    beside = [path for path in paths if "=" not in path[len(folder) + 1 :].rpartition("/")[0]]
    if beside:
        raise PublishError(
            f"{len(beside)} of {len(paths)} files that were written to {folder!r} lie in no partition, and the output "
            f"is partitioned by {', '.join(partition_by)}, the first: {beside[0]!r}. Nothing was committed or "
            "published. The format ignores partitionBy: leave it out, or write another format."
        )


def _refuse_hidden_partitions(files: FileSystem, folder: str) -> None:
    # Spark writes such a partition and then never reads it: its rows would be committed and lost.
    for name in files.folders(folder):
        if "=" in name and (name.startswith(".") or name.endswith("._COPYING_")):
            raise PublishError(
                f"the partition {name!r} of what was written has a name that readers take for a hidden file: its rows "
                "would be lost. Nothing was committed or published. Rename the column, or change the value."
            )
        _refuse_hidden_partitions(files, f"{folder}/{name}")


def _published(relative: str, target: str, token: str) -> str:
    folder, _, name = relative.rpartition("/")
    return "/".join(part for part in (target, folder, f"{token}-{name}") if part)


def _present(files: FileSystem, folder: str) -> list[str]:
    try:
        return list(files.list(folder, recursive=True).files.paths)
    except SourceMissingError:
        return []


def purge_request(folder: str) -> StagingRequest:
    """Return what is stored before a purge of files below a folder: it stages nothing, and its publish deletes."""
    return StagingRequest(FILES_SINK, folder, stats={"mode": Mode.PURGE.value})
