"""The lists of files that an output is stored with: what a publish moves, and what it deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.files.columns import texts
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.text.deflated import deflated, inflated

if TYPE_CHECKING:
    from collections.abc import Sequence


def encode_moves(moves: Sequence[tuple[str, str]], staged: Listing | None = None) -> bytes:
    """Return a publish list as stored: (staged file, published file), and the size, time (ms) and etag it was `staged`
    with, where that is known.
    """
    rows: list[list[Any]] = [list(move) for move in moves]
    for row, file in zip(rows, staged or (), strict=False):
        row += [file.size_bytes, file.modified_ms, file.etag]
    return deflated(rows)


def decode_moves(body: bytes) -> list[tuple[str, str]]:
    """Return the pairs of the publish list that `encode_moves` wrote."""
    return [(row[0], row[1]) for row in _move_rows(body)]


def decode_published(body: bytes) -> list[FileInfo | str]:
    """Return what a publish list makes visible: each file as it was staged, its path alone where that is not known."""
    return [row[1] if len(row) == 2 else FileInfo(row[1], *row[2:]) for row in _move_rows(body)]


def encode_paths(files: Sequence[FileInfo | str]) -> bytes:
    """Return a delete list as stored: paths, and (path, size, time (ms), etag) of those that go only as listed."""
    return deflated(
        [file if isinstance(file, str) else [file.path, file.size_bytes, file.modified_ms, file.etag] for file in files]
    )


def decode_paths(body: bytes) -> list[str]:
    """Return the paths of the delete list that `encode_paths` wrote."""
    return [file if isinstance(file, str) else file.path for file in decode_deletes(body)]


def decode_deletes(body: bytes) -> list[FileInfo | str]:
    """Return what a delete list takes away: a path alone goes whatever its file holds by then."""
    rows = _unzip(body)
    try:
        texts([row[0] if _is_listed(row) else row for row in rows])
    except TypeError as error:
        raise StateCorruptError(f"a stored file list can't be read ({error}); nothing was changed") from error
    return [row if isinstance(row, str) else FileInfo(*row) for row in rows]


def _move_rows(body: bytes) -> list[list[Any]]:
    rows = _unzip(body)
    for row in rows:
        is_pair = isinstance(row, list) and len(row) in (2, 5) and all(isinstance(path, str) for path in row[:2])
        if not is_pair or (len(row) == 5 and not _is_version(*row[2:])):
            raise StateCorruptError("a stored publish list has a row that means nothing; nothing was changed")
    return rows


def _is_listed(row: object) -> bool:
    return isinstance(row, list) and len(row) == 4 and _is_version(*row[1:])


def _is_version(size: object, time_ms: object, etag: object) -> bool:
    return isinstance(size, int) and isinstance(time_ms, int) and isinstance(etag, str | None)


def _unzip(body: bytes) -> list[Any]:
    document = inflated(body, "file list")
    if not isinstance(document, list):
        raise StateCorruptError("a stored file list is not a list; nothing was changed")
    return document
