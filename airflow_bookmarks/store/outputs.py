"""Read stored outputs: the files that a run made visible, and those that it replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.selection.partition import folders_above
from airflow_bookmarks.store.codec import item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.store.blobs import BlobStore
    from airflow_bookmarks.store.reader import StateReader


def paths_replaced(blobs: BlobStore, output: OutputEntry) -> list[str]:
    """Return the files that the publish of an output deletes or has deleted, those of all its revisions together."""
    lists = [payload for payload in (output.delete, output.replaced) if payload is not None]
    return [path for payload in lists for path in decode_paths(blobs.get(payload))]


def paths_replaced_by_sides(store: StateReader, job: str) -> set[str]:
    """Return the published files that pause and disable runs of a job were asked to replace."""
    payloads = [
        item.payload_of(value)
        for record in store.sides(job)
        for name, value in record.items()
        if name.startswith(item.REPLACED_PREFIX)
    ]
    return {path for payload in payloads for path in decode_paths(store.blobs.get(payload))}


def numbers_replacing(blobs: BlobStore, deleting: Sequence[Run], dropped: Sequence[Run]) -> Mapping[str, int]:
    """Return the number of the last run that replaced each file.

    `deleting` runs have deleted what they replaced, or are deleting it. `dropped` runs were undone, maybe while
    deleting: some of the files on their lists may be gone, and no others. If a later run has overwritten the place of
    such a file, it would have deleted the file if it had still been there.
    """
    replaced: dict[str, int] = {}
    for run in deleting:
        for _, path in _paths_replaced_by(blobs, run):
            replaced[path] = max(replaced.get(path, 0), run.key.number)
    overwritten = _overwritten(blobs, deleting) if dropped else {}
    for run in dropped:
        for target, path in _paths_replaced_by(blobs, run):
            number = max(overwritten.get(folder, 0) for folder in (target, *folders_above(path, target)))
            if number > run.key.number:
                replaced[path] = max(replaced.get(path, 0), number)
    return replaced


def _paths_replaced_by(blobs: BlobStore, run: Run) -> Iterator[tuple[str, str]]:
    """Yield each file that a run replaces, preceded by its target."""
    return ((output.target, path) for output in run.outputs.values() for path in paths_replaced(blobs, output))


def _overwritten(blobs: BlobStore, runs: Sequence[Run]) -> Mapping[str, int]:
    """Return the number of the last run that replaced everything below a folder, by folder."""
    last: dict[str, int] = {}
    for run in runs:
        for output in run.outputs.values():
            for folder in _folders_overwritten(blobs, output):
                last[folder] = max(last.get(folder, 0), run.key.number)
    return last


def _folders_overwritten(blobs: BlobStore, output: OutputEntry) -> set[str]:
    mode = output.metadata.mode
    if output.publish is None:
        return set()
    if mode == Mode.OVERWRITE:
        return {output.target}
    if mode == Mode.OVERWRITE_PARTITIONS:
        return {path.rpartition("/")[0] for _, path in decode_moves(blobs.get(output.publish))}
    return set()
