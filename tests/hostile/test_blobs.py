"""Blobs that are not what they seem: references to what is not the store's, devices, and little that becomes much."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths, decode_published, encode_paths
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import decode_states
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.core.run import Payload
from airflow_bookmarks.core.text.deflated import LEAST_RAW_BYTES, deflated, inflated, packed_parts
from airflow_bookmarks.files.objects import FileObjects
from airflow_bookmarks.sinks.clean import CleanList
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.blobs import OBJECT_BYTES
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Update
from airflow_bookmarks.store.transitions import collection

LARGE = b"\1" * (OBJECT_BYTES + 1)


class Watched(FileObjects):
    """Notes what is read and deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.touched: list[str] = []

    def get(self, uri: str, most_bytes: int) -> bytes:
        self.touched.append(uri)
        return super().get(uri, most_bytes)

    def size(self, uri: str) -> int | None:
        self.touched.append(uri)
        return super().size(uri)

    def delete(self, uri: str) -> None:
        self.touched.append(uri)


@pytest.fixture
def objects() -> Watched:
    return Watched()


def opened(tmp_path: Path, objects: FileObjects, state_uri: str | None) -> BookmarkStore:
    return BookmarkStore(SqliteTable(tmp_path / "b.db"), "test", state_uri=state_uri, objects=objects)


@pytest.fixture
def blobs_of(tmp_path: Path, objects: Watched) -> BookmarkStore:
    store = opened(tmp_path, objects, str(tmp_path / "state"))
    store.init()
    return store


def changed(store: BookmarkStore, payload: Payload, **attributes: Any) -> None:
    store.table.transact([Update(store.blobs.proof(LARGE).key, set=attributes)])
    assert payload.inline is None


Foreign = Callable[[Path, str], str]
ELSEWHERE: Sequence[Foreign] = [
    lambda tmp_path, name: "/dev/zero",
    lambda tmp_path, name: "s3://somebody-elses-bucket/x",
    lambda tmp_path, name: f"s3://somebody-elses-bucket/{name}",
    lambda tmp_path, name: f"webhdfs://169.254.169.254/{name}",
    lambda tmp_path, name: f"{tmp_path}/secret/{name}",
    lambda tmp_path, name: f"{tmp_path}/state-of-another/{name}",
    lambda tmp_path, name: f"{tmp_path}/state/../secret/{name}",
    lambda tmp_path, name: f"{tmp_path}/state/x/{name}",
    lambda tmp_path, name: f"{tmp_path}/state/{name.replace('test/', 'other/')}",
    lambda tmp_path, name: f"{tmp_path}/state/{name.replace('/blobs/', '/blobs/x/')}",
    lambda tmp_path, name: f"{tmp_path}/state/{name}x",
    lambda tmp_path, name: f"{tmp_path}/state/test/blobs/../{name.rpartition('/')[2]}",
    lambda tmp_path, name: f"{tmp_path}/state/{name.rpartition('/')[0]}/{'0' * 64}-{name[-26:]}",
]


@pytest.mark.parametrize("foreign", ELSEWHERE, ids=range(len(ELSEWHERE)))
def test_reference_to_where_the_store_puts_nothing_is_not_followed(
    blobs_of: BookmarkStore, objects: Watched, tmp_path: Path, foreign: Foreign
) -> None:
    payload = blobs_of.blobs.put(LARGE)
    (own,) = blobs_of.blobs.objects()
    uri = foreign(tmp_path, own.removeprefix(f"{tmp_path}/state/"))
    changed(blobs_of, payload, uri=uri)
    objects.touched.clear()

    with pytest.raises(StateCorruptError, match="names the object") as raised:
        blobs_of.blobs.get(payload)
    (stored,) = collection.stored_blobs(blobs_of)
    assert collection.remove_blob(blobs_of, stored)

    assert uri in str(raised.value)
    assert payload.sha256 in str(raised.value)
    assert "Nothing was read or changed" in str(raised.value)
    assert objects.touched == []


def test_what_is_put_again_does_not_look_at_a_foreign_reference(blobs_of: BookmarkStore, objects: Watched) -> None:
    payload = blobs_of.blobs.put(LARGE)
    folder = str(blobs_of.blobs.folder)
    changed(blobs_of, payload, uri=f"{folder}/../../../x")
    objects.touched.clear()

    blobs_of.blobs.put(LARGE)

    assert objects.touched == []
    assert blobs_of.blobs.get(payload) == LARGE


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_regular_file_is_not_read(blobs_of: BookmarkStore, tmp_path: Path, kind: str) -> None:
    payload = blobs_of.blobs.put(LARGE)
    path = Path(blobs_of.blobs.objects()[0])
    path.rename(tmp_path / "aside")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()

    with pytest.raises(StateCorruptError, match="no regular file"):
        blobs_of.blobs.get(payload)


def test_object_that_grew_is_read_no_further_than_its_reference_says(blobs_of: BookmarkStore, tmp_path: Path) -> None:
    payload = blobs_of.blobs.put(LARGE)
    with Path(blobs_of.blobs.objects()[0]).open("ab") as file:
        file.truncate(8 * 1024**4)  # of which nothing is on the disk

    with pytest.raises(StateCorruptError, match="do not match their checksum"):
        blobs_of.blobs.get(payload)


@pytest.mark.parametrize("size", [2**41, -1, "many"])
def test_size_that_no_blob_has_is_refused_before_anything_is_read(
    blobs_of: BookmarkStore, objects: Watched, size: object
) -> None:
    payload = blobs_of.blobs.put(LARGE)
    changed(blobs_of, payload, bytes=size)
    objects.touched.clear()

    with pytest.raises(StateCorruptError, match="bytes, and a blob has"):
        blobs_of.blobs.get(payload)

    assert objects.touched == []


def test_number_of_chunks_that_no_blob_has_is_refused(tmp_path: Path, objects: Watched) -> None:
    store = opened(tmp_path, objects, None)
    store.init()
    payload = store.blobs.put(b"\1" * 400_000)
    first = store.blobs.proof(b"\1").key
    store.table.transact([Update(type(first)(f"test#BLOB#{payload.sha256}", first.sk), set={"chunks": 10**9})])

    with pytest.raises(StateCorruptError, match="chunks, and one has"):
        store.blobs.get(payload)


def test_folder_of_before_is_known_once_an_admin_has_said_so(tmp_path: Path, objects: Watched) -> None:
    table = SqliteTable(tmp_path / "b.db")
    BookmarkStore(table, "test").init()
    payload = opened(tmp_path, objects, str(tmp_path / "old")).blobs.put(LARGE)  # a driver, which calls no init

    with pytest.raises(StateCorruptError, match="airflow-bookmarks init"):
        opened(tmp_path, objects, str(tmp_path / "new")).blobs.get(payload)
    opened(tmp_path, objects, f"file://{tmp_path}/old").init()
    opened(tmp_path, objects, str(tmp_path / "new")).init()

    assert opened(tmp_path, objects, str(tmp_path / "new")).blobs.get(payload) == LARGE
    assert opened(tmp_path, objects, None).blobs.get(payload) == LARGE


# ---- what expands


def bomb(start: bytes = b"", times: int = 300) -> bytes:
    """Return little that becomes `times` MiB."""
    packer = zlib.compressobj(9)
    packed = packer.compress(start)
    for _ in range(times):
        packed += packer.compress(b" " * 1024**2)
    return packed + packer.flush()


@pytest.mark.seldom
@pytest.mark.parametrize(
    "decode", [FilePlan.decode, CleanList.decode, decode_moves, decode_paths, decode_published], ids=range(5)
)
@pytest.mark.parametrize("trailer", [b"", b"RAW\0" + (300 * 1024**2).to_bytes(8, "big"), b"RAW\0" + b"\xff" * 8])
def test_little_that_becomes_much_is_refused_before_it_does(decode: Callable[[bytes], object], trailer: bytes) -> None:
    with pytest.raises(StateCorruptError):
        decode(bomb() + trailer)


def test_no_more_is_unpacked_than_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = zlib.decompressobj

    class Counting:
        def __init__(self) -> None:
            self.inner = real()

        def decompress(self, data: bytes, most: int = 0) -> bytes:
            found = self.inner.decompress(data, most)
            asked.append(len(found))
            return found

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    monkeypatch.setattr("airflow_bookmarks.core.text.deflated.zlib.decompressobj", Counting)
    packed = bomb()
    with pytest.raises(StateCorruptError, match="more than"):
        inflated(packed, "list")
    assert sum(asked) <= LEAST_RAW_BYTES + 1

    asked.clear()
    with pytest.raises(StateCorruptError, match="more than"):
        inflated(packed + b"RAW\0" + (10).to_bytes(8, "big"), "list")
    assert sum(asked) <= 11


def test_what_is_packed_is_unpacked_with_and_without_its_recorded_size() -> None:
    packed = deflated(["a", "b"])

    assert inflated(packed, "list") == ["a", "b"]
    assert inflated(zlib.compress(b'["a"]'), "list") == ["a"]
    assert decode_paths(encode_paths(["/x"])) == ["/x"]
    assert json.loads(zlib.decompress(packed)) == ["a", "b"]  # as versions read it that knew of no size


@pytest.mark.parametrize(
    "body",
    [
        zlib.compress(b"[" * 100_000),
        zlib.compress(b'["a"]')[:-3],
        zlib.compress(b'["a"]') + b"something else",
        deflated(["a"])[:-1],
        zlib.compress(b'["a"]') + b"RAW\0" + (4).to_bytes(8, "big"),
        zlib.compress(b'["a"]') + b"RAW\0" + (6).to_bytes(8, "big"),
        b"",
    ],
    ids=range(7),
)
def test_damage_is_an_error_and_never_an_empty_list(body: bytes) -> None:
    with pytest.raises(StateCorruptError):
        decode_paths(body)


def test_long_beginning_that_all_paths_share_is_not_multiplied() -> None:
    count = 200_000
    document = {
        "v": 1, "roots": [], "listed": 0, "known": 0, "skipped": {}, "partition_types": {}, "upstream": None,
        "base": "a" * 100_000, "path": [""] * count, "size": [0] * count, "time": [0] * count, "etag": None,
    }  # fmt: skip

    with pytest.raises(StateCorruptError, match="longer than"):
        FilePlan.decode(zlib.compress(json.dumps(document).encode()))


def test_parts_of_a_plan_do_not_add_up_to_what_one_may_not_become() -> None:
    part = zlib.compress(b" " * 1000) + b"RAW\0" + (2**29).to_bytes(8, "big")

    with pytest.raises(StateCorruptError, match="its parts become more than"):
        FilePlan.decode(packed_parts({"v": 2, "files": [1, 1]}, [part, part, part]))


@pytest.mark.parametrize("index", [{"sizes": 7}, {"sizes": [-1]}, {"files": 3}, {"files": [1, -1]}, {}])
def test_index_of_parts_that_means_nothing_is_damage(index: dict[str, Any]) -> None:
    body = zlib.compress(json.dumps({"v": 2, **index}, separators=(",", ":")).encode())

    for read in (FilePlan.decode, lambda body: FilePlan.page(body, 0, 1)):
        with pytest.raises(StateCorruptError):
            read(body)


@pytest.mark.parametrize("decode", [decode_states, UpstreamPosition.decode])
def test_json_that_is_nested_too_deeply_is_damage(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(StateCorruptError):
        decode(b"[" * 100_000)
