"""What a process may look at: places compared by whole names, however a path is spelled."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import LookRefusedError
from airflow_bookmarks.files.filesystem import FileSystem
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.permission import Permission, Prefix, looking_below


@pytest.mark.parametrize(
    ("listed", "path", "is_allowed"),
    [
        ("s3://lake/raw/", "s3://lake/raw", True),
        ("s3://lake/raw", "s3a://lake/raw/year=2013/1.csv", True),
        ("s3://lake/raw", "s3://lake/rawer/1.csv", False),
        ("s3://lake/raw", "s3://lake", False),
        ("s3://lake/raw", "s3://lake/raw/../clean/1.csv", False),
        ("s3://lake/raw", "s3://lake/clean/../raw/1.csv", True),
        ("s3://lake/raw", "s3://lake/raw/../../raw/1.csv", False),
        ("s3://lake", "s3://lake2/1.csv", False),
        ("s3://lake", "s3://lake@elsewhere/1.csv", False),
        ("hdfs://names:8020/raw", "hdfs://names/raw/1.csv", True),
        ("hdfs://names/raw", "webhdfs://names/raw/1.csv", False),
        ("webhdfs://names:9870/raw", "webhdfs://names:9871/raw", False),
        ("/lake/raw", "file:///lake/raw/1.csv", True),
        ("/lake/raw", "file:/lake/raw/1.csv", True),
        ("/lake/raw", "file://elsewhere/lake/raw/1.csv", False),
        ("/lake/raw", "/lake/raw/../1.csv", False),
        ("/lake/raw", "lake/raw", False),
        ("/lake/raw", "", False),
        ("/lake/raw", "/lake/raw/\0", False),
        ("/lake/raw", "s3://lake/raw", False),
    ],
)
def test_path_is_allowed_where_it_leads_below_a_prefix(listed: str, path: str, is_allowed: bool) -> None:
    assert Permission((Prefix.of(listed),)).allows(path) is is_allowed


def test_local_link_is_where_it_leads(tmp_path: Path) -> None:
    raw, private = tmp_path / "raw", tmp_path / "private"
    for folder in (raw, private):
        folder.mkdir()
    (raw / "link").symlink_to(private)
    permission = Permission((Prefix.of(str(raw)),))

    assert permission.allows(str(raw / "1.csv"))
    assert not permission.allows(str(raw / "link"))
    assert not permission.allows(str(raw / "link" / "1.csv"))


@pytest.mark.parametrize("name", ["folder", "file"])
def test_link_that_leads_out_of_a_listed_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    raw, private = tmp_path / "raw", tmp_path / "private" / "folder"
    raw.mkdir()
    private.mkdir(parents=True)
    (private.parent / "file").write_text("secret")
    (raw / "link").symlink_to(private.parent / name)

    with looking_below(Prefix.of(str(raw))), pytest.raises(LookRefusedError):
        open_filesystem(str(raw)).list(str(raw), recursive=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda files, path: files.delete(path),
        lambda files, path: files.remove(path),
        lambda files, path: files.move(path, f"{path}.new"),
        lambda files, path: files.write(path, io.BytesIO(b"")),
    ],
)
def test_nothing_is_changed_where_only_a_look_is_allowed(
    tmp_path: Path, change: Callable[[FileSystem, str], object]
) -> None:
    file = tmp_path / "1.csv"
    file.write_text("kept")

    with looking_below(Prefix.of(str(tmp_path))), pytest.raises(LookRefusedError):
        change(open_filesystem(str(tmp_path)), str(file))

    assert [path.name for path in tmp_path.iterdir()] == ["1.csv"]
    assert file.read_text() == "kept"


def test_what_was_refused_is_noted_and_outside_nothing_is_refused(tmp_path: Path) -> None:
    with looking_below() as permission, pytest.raises(LookRefusedError):
        open_filesystem(str(tmp_path))

    assert permission.refused == [str(tmp_path)]
    assert len(open_filesystem(str(tmp_path)).list(str(tmp_path)).files) == 0
