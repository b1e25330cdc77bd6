"""Each file system keeps the promises of `FileSystem`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.files.opener import open_filesystem, open_one_filesystem
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.files.s3.settings import S3Settings
from tests.files.conformance import FileSystemConformance, Ground
from tests.files.s3.s3_ground import client_for, s3_ground


@dataclass(frozen=True)
class LocalGround(Ground):
    def put(self, name: str, content: bytes = b"a row\n") -> str:
        path = Path(self.path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)


class TestLocal(FileSystemConformance):
    @pytest.fixture
    def ground(self, tmp_path: Path) -> Ground:
        return LocalGround(LocalFileSystem(), str(tmp_path))


class TestMoto(FileSystemConformance):
    @pytest.fixture
    def ground(self, moto_settings: S3Settings, aws_session: boto3.session.Session) -> Ground:
        return s3_ground(client_for(aws_session, moto_settings), moto_settings, uuid.uuid4().hex)


@pytest.mark.thorough  # it is compiled first
class TestVersitygw(FileSystemConformance):
    @pytest.fixture
    def ground(self, versitygw_settings: S3Settings, aws_session: boto3.session.Session) -> Ground:
        return s3_ground(client_for(aws_session, versitygw_settings), versitygw_settings, uuid.uuid4().hex)


@pytest.mark.parametrize("path", ["s3://lake/raw", "s3a://lake/raw", "s3n://lake/raw"])
def test_paths_in_s3_are_opened_in_s3(path: str) -> None:
    assert isinstance(open_filesystem(path), S3FileSystem)


@pytest.mark.parametrize("path", ["/lake/raw", "file:///lake/raw", "file:/lake/raw"])
def test_local_paths_are_opened_here(path: str) -> None:
    assert isinstance(open_filesystem(path), LocalFileSystem)


def test_unknown_scheme_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(OptionError, match=r"no file system for scheme 'ftp'.*S3.*HDFS"):
        open_filesystem("ftp://lake/raw")


def test_paths_of_one_file_system_have_one_however_they_name_it() -> None:
    assert isinstance(open_one_filesystem(["s3://lake/raw", "s3a://lake/old", "s3n://attic/raw"]), S3FileSystem)
    assert isinstance(open_one_filesystem(["/lake/raw", "file:///lake/old", "file:/lake"]), LocalFileSystem)


@pytest.mark.parametrize("paths", [["s3a://lake/raw", "/lake/raw"], ["file:///lake/raw", "/lake/old", "s3://lake/raw"]])
def test_paths_of_several_file_systems_are_refused(paths: list[str]) -> None:
    with pytest.raises(OptionError, match=r"different file systems.*Nothing was read"):
        open_one_filesystem(paths)


@pytest.mark.parametrize("path", ["dbfs:/raw", "dbfs:///raw"])
def test_path_in_dbfs_is_refused_by_its_scheme(path: str) -> None:
    with pytest.raises(OptionError, match=r"no file system for scheme 'dbfs'.*store that lies below DBFS.*Nothing was"):
        open_filesystem(path)
