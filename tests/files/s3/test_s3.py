"""What S3 has and other file systems have not: markers, schemes, etags of parts, regions and rights."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import boto3.session
import pytest
from botocore.exceptions import ClientError
from mypy_boto3_s3.type_defs import CompletedPartTypeDef

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceMissingError
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.filesystem import FileSystem, FileSystemError
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.files.s3.settings import S3Access, S3Settings
from tests.files.s3.s3_ground import BUCKET, S3Ground, client_for, s3_ground

MIB = 1024**2


@pytest.fixture
def ground(moto_settings: S3Settings, aws_session: boto3.session.Session) -> S3Ground:
    return s3_ground(client_for(aws_session, moto_settings), moto_settings, uuid.uuid4().hex)


def put_in_parts(ground: S3Ground, name: str, *parts: bytes, **how: Any) -> str:
    """Write a file by a multipart upload, as s3a does from some size on; return its path."""
    path = ground.path(name)
    key = path.removeprefix(f"s3a://{BUCKET}/")
    client = ground.client
    what: Any = {"ContentType": "text/csv", "Metadata": {"by": "s3a"}, **how}
    made = client.create_multipart_upload(Bucket=BUCKET, Key=key, **what)
    upload = made["UploadId"]
    listed: list[CompletedPartTypeDef] = []
    for number, part in enumerate(parts, 1):
        tag = client.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=number, Body=part)["ETag"]
        listed.append({"ETag": tag, "PartNumber": number})
    client.complete_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload, MultipartUpload={"Parts": listed})
    return path


# ---- names


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_path_is_one_whatever_scheme_it_is_given_with(scheme: str) -> None:
    assert S3FileSystem(scheme=scheme).canonical(f"{scheme}://lake//raw/./x/../flights/") == "s3a://lake/raw/flights"
    assert S3FileSystem(scheme=scheme).canonical(f"{scheme}://lake/") == "s3a://lake"


def test_spark_reads_by_the_scheme_that_the_path_was_given_with() -> None:
    path = "s3a://lake/raw/a[1].csv"

    assert S3FileSystem(scheme="s3").uri(path) == "s3://lake/raw/a[1].csv"
    assert S3FileSystem(scheme="s3").pattern(path) == "s3://lake/raw/a\\[1\\].csv"
    assert S3FileSystem(scheme="s3a").uri(path) == path
    assert S3FileSystem(scheme="s3n").uri(path) == path  # Hadoop has no s3n any more
    assert S3FileSystem(S3Settings(scheme="s3"), "s3a").uri(path) == "s3://lake/raw/a[1].csv"


def test_path_with_credentials_is_refused_and_not_repeated() -> None:
    with pytest.raises(OptionError) as caught:
        S3FileSystem().canonical("s3a://AKIA:secret@lake/raw")

    assert "secret@" not in str(caught.value)


def test_path_on_another_file_system_is_refused() -> None:
    with pytest.raises(OptionError, match="no path in S3"):
        S3FileSystem().canonical("/lake/raw")


def test_directory_bucket_is_refused_by_its_name() -> None:
    path = "s3a://flights--use1-az4--x-s3/raw"

    with pytest.raises(OptionError, match=r"directory bucket.*Nothing was read or changed"):
        S3FileSystem().canonical(path)
    with pytest.raises(OptionError, match="directory bucket"):
        S3FileSystem().list(path)


# ---- listings


def test_markers_of_folders_are_no_input_and_counted(ground: S3Ground) -> None:
    ground.put("", b"")
    ground.put("x=1/", b"")
    ground.put("x=2_$folder$", b"")
    ground.put_all("x=1/a.csv", "_tmp/")

    listed = ground.files.list(ground.root)

    assert ground.names() == ["x=1/a.csv"]
    assert listed.skipped == {"marker": 3, "hidden": 1}


def test_folder_that_is_empty_but_for_its_marker_is_there(ground: S3Ground) -> None:
    ground.put("raw/", b"")

    listed = ground.files.list(ground.path("raw"))

    assert (len(listed.files), listed.skipped) == (0, {"marker": 1})


def test_keys_that_no_path_of_spark_can_name_are_no_input_and_counted(ground: S3Ground) -> None:
    ground.put_all("a.csv", "x=1//b.csv", "/c.csv")

    listed = ground.files.list(ground.root)

    assert (ground.names(), listed.skipped) == (["a.csv"], {"special": 2})


def test_key_of_the_greatest_length_is_listed(ground: S3Ground) -> None:
    name = "/".join(["x=1" + "é" * 100] * 4 + ["a" * (1024 - len(ground.root) + len("s3a://lake/") - 4 * 204 - 1)])
    ground.put(name)

    assert ground.names() == [name]


def test_bucket_is_a_root(ground: S3Ground) -> None:
    bucket = f"of-its-own-{uuid.uuid4().hex[:8]}"
    ground.client.create_bucket(Bucket=bucket)
    assert len(ground.files.list(f"s3a://{bucket}").files) == 0

    ground.client.put_object(Bucket=bucket, Key="raw/a.csv", Body=b"x")

    assert ground.files.list(f"s3a://{bucket}", recursive=True).files.paths == [f"s3a://{bucket}/raw/a.csv"]
    assert ground.files.folders(f"s3a://{bucket}") == ["raw"]


# ---- moves


def test_file_written_in_parts_keeps_its_version_when_it_moves(ground: S3Ground) -> None:
    path = put_in_parts(ground, "_bookmarks/a.csv", b"a" * 6 * MIB, b"b" * 6 * MIB, b"c" * MIB)
    (before,) = ground.files.stat([path])

    assert ground.files.move(path, ground.path("a.csv"))

    source, target = ground.files.stat([path, ground.path("a.csv")])
    assert before is not None
    assert before.etag is not None
    assert before.etag.endswith("-3")
    assert source is None
    assert target is not None
    assert (target.version, target.size_bytes) == (before.version, 13 * MIB)
    assert ground.content("a.csv")[6 * MIB - 1 :][:2] == b"ab"
    head = ground.client.head_object(Bucket=BUCKET, Key=ground.path("a.csv").removeprefix(f"s3a://{BUCKET}/"))
    assert (head["ContentType"], head["Metadata"]) == ("text/csv", {"by": "s3a"})


def test_file_whose_parts_differ_is_moved_whole(ground: S3Ground) -> None:
    path = put_in_parts(ground, "_bookmarks/a.csv", b"a" * 5 * MIB, b"b" * 7 * MIB, b"c")

    assert ground.files.move(path, ground.path("a.csv"))

    assert len(ground.content("a.csv")) == 12 * MIB + 1


def test_object_that_is_too_large_for_one_copy_is_copied_in_parts(
    ground: S3Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_bookmarks.files.s3.filesystem._LARGEST_COPY_BYTES", 6 * MIB)
    monkeypatch.setattr("airflow_bookmarks.files.s3.filesystem._PART_BYTES", 5 * MIB)
    path = ground.put("_bookmarks/a.csv", b"a" * 11 * MIB)

    assert ground.files.move(path, ground.path("a.csv"))

    (target,) = ground.files.list(ground.root).files
    assert target.size_bytes == 11 * MIB
    assert target.etag is not None
    assert target.etag.endswith("-3")
    assert unfinished(ground) == []


def unfinished(ground: S3Ground) -> list[str]:
    """Return the keys of uploads that nobody finished."""
    uploads = ground.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return [u["Key"] for u in uploads if u["Key"].startswith(ground.root.removeprefix(f"s3a://{BUCKET}/"))]


def when_parts_are_copied(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen once, between the last part of a copy and its end."""
    copy_parts = S3FileSystem._each_part

    def sleeps(files: S3FileSystem, *args: Any) -> Sequence[dict[str, Any]]:
        parts = copy_parts(files, *args)
        monkeypatch.setattr(S3FileSystem, "_each_part", copy_parts)
        act()
        return parts

    monkeypatch.setattr(S3FileSystem, "_each_part", sleeps)


def test_publisher_that_sleeps_in_a_copy_by_parts_brings_no_replaced_file_back(
    ground: S3Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, target = put_in_parts(ground, "_bookmarks/a.csv", b"a" * 5 * MIB, b"b"), ground.path("a.csv")

    def another_moves_it_and_a_later_run_replaces_it() -> None:
        assert ground.files.move(path, target)
        assert ground.files.delete(target)

    when_parts_are_copied(monkeypatch, another_moves_it_and_a_later_run_replaces_it)

    assert not ground.files.move(path, target)

    assert ground.files.stat([path, target]) == [None, None]
    assert unfinished(ground) == []


def test_file_that_is_replaced_while_its_parts_are_copied_stays(
    ground: S3Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put_in_parts(ground, "a.csv", b"a" * 5 * MIB, b"b")
    when_parts_are_copied(monkeypatch, lambda: ground.put("a.csv", b"new"))

    with pytest.raises(FileSystemError, match="was replaced while it was copied"):
        ground.files.move(path, ground.path("done/a.csv"))

    assert ground.content("a.csv") == b"new"
    assert ground.files.stat([ground.path("done/a.csv")]) == [None]


def test_upload_that_can_not_be_given_up_hides_nothing(
    ground: S3Ground, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = put_in_parts(ground, "_bookmarks/a.csv", b"a" * 5 * MIB, b"b")
    when_parts_are_copied(monkeypatch, lambda: ground.files.move(path, ground.path("a.csv")))
    events = ground.files._clients.of(BUCKET).meta.events  # type: ignore[attr-defined]

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AbortMultipartUpload")

    events.register("before-call.s3.AbortMultipartUpload", refuse)
    try:
        assert not ground.files.move(path, ground.path("a.csv"))
    finally:
        events.unregister("before-call.s3.AbortMultipartUpload", refuse)

    assert ground.names() == ["a.csv"]
    assert re.search(r"unfinished upload \S+ of s3a://lake/\S+/a.csv is left.*AccessDenied", caplog.text)


@pytest.mark.parametrize("in_parts", [False, True], ids=["at once", "in parts"])
def test_file_keeps_the_encryption_and_storage_class_that_it_was_written_with(ground: S3Ground, in_parts: bool) -> None:
    how: Any = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "of-flights", "StorageClass": "STANDARD_IA"}
    path, target = ground.path("_bookmarks/a.csv"), ground.path("a.csv")
    if in_parts:
        put_in_parts(ground, "_bookmarks/a.csv", b"a" * 5 * MIB, b"b", **how)
    else:
        ground.client.put_object(Bucket=BUCKET, Key=path.removeprefix(f"s3a://{BUCKET}/"), Body=b"a", **how)

    assert ground.files.move(path, target)

    head: Any = ground.client.head_object(Bucket=BUCKET, Key=target.removeprefix(f"s3a://{BUCKET}/"))
    assert {name: head.get(name) for name in how} == how


def test_other_bucket_encrypts_by_its_own_default(ground: S3Ground) -> None:
    other = f"of-its-own-{uuid.uuid4().hex[:8]}"
    ground.client.create_bucket(Bucket=other)
    path = put_in_parts(ground, "a.csv", b"a", ServerSideEncryption="aws:kms", SSEKMSKeyId="of-flights")

    assert ground.files.move(path, f"s3a://{other}/a.csv")

    assert "SSEKMSKeyId" not in ground.client.head_object(Bucket=other, Key="a.csv")


def test_folder_of_several_pages_is_removed_whole(ground: S3Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_bookmarks.files.s3.filesystem._REMOVED_AT_ONCE", 4)
    ground.put_all(*(f"_bookmarks/{i:04d}" for i in range(10)), "a.csv")

    ground.files.remove(ground.path("_bookmarks"))

    assert ground.files.list(ground.root).skipped == {}
    assert ground.names() == ["a.csv"]


# ---- what is refused


def test_missing_bucket_is_told_from_missing_folder(ground: S3Ground) -> None:
    with pytest.raises(SourceMissingError, match="neither this key nor one below it"):
        ground.files.list(ground.path("nothing"))

    with pytest.raises(SourceError, match="no such bucket") as caught:
        ground.files.list("s3a://no-such-bucket-here/raw")
    assert not isinstance(caught.value, SourceMissingError)


@pytest.mark.parametrize(
    "call",
    [
        lambda files, path: files.move(path.replace("no-such-bucket-here", BUCKET), path),
        lambda files, path: files.delete(path),
        lambda files, path: files.remove(path),
        lambda files, path: files.open(path),
    ],
    ids=["move", "delete", "remove", "open"],
)
def test_refusal_is_an_error_of_the_system_as_on_a_disk(
    ground: S3Ground, call: Callable[[FileSystem, str], object]
) -> None:
    path = ground.put("a.csv").replace(BUCKET, "no-such-bucket-here")

    with pytest.raises(OSError, match="no such bucket"):
        call(ground.files, path)


def test_bucket_that_is_gone_has_no_folders(ground: S3Ground) -> None:
    assert ground.files.folders("s3a://no-such-bucket-here/raw") == []


def test_failed_move_leaves_the_source(ground: S3Ground) -> None:
    ground.put("a.csv", b"12345")

    with pytest.raises(OSError, match="can't be moved"):
        ground.files.move(ground.path("a.csv"), "s3a://no-such-bucket-here/a.csv")

    assert ground.content("a.csv") == b"12345"


def test_nobody_answering_is_told_with_what_to_check() -> None:
    files = S3FileSystem(S3Settings(S3Access("http://127.0.0.1:9", "us-east-1", access_key="a", secret_key="b")))

    with pytest.raises(FileSystemError, match=r"did not answer.*AWS_ENDPOINT_URL_S3"):
        files.list("s3a://lake/raw")


def test_missing_credentials_are_told_with_where_to_put_them(
    moto_settings: S3Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    access = replace(moto_settings.access, access_key=None, secret_key=None, region="eu-north-1")

    with pytest.raises(FileSystemError, match=r"no credentials were found.*spark\.bookmarks\.s3\.access\.key"):
        S3FileSystem(S3Settings(access)).list("s3a://lake/raw")


@pytest.mark.parametrize("endpoint", ["::no url", "http://a b"])
def test_endpoint_that_is_none_is_told(endpoint: str) -> None:
    with pytest.raises(OptionError, match=r"is no endpoint.*spark\.hadoop\.fs\.s3a\.endpoint"):
        S3FileSystem(S3Settings(S3Access(endpoint))).list("s3a://lake/raw")


def test_bucket_with_a_name_that_none_has_is_told() -> None:
    with pytest.raises(FileSystemError, match="Correct the name of the bucket"):
        S3FileSystem().list("s3a://a b/raw")


# ---- how it is reached


def test_endpoint_and_credentials_of_the_environment_are_used(
    ground: S3Ground, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground.put("a.csv")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    files = S3FileSystem(S3Settings(connections=2))

    assert files.list(ground.root).files.paths == [ground.path("a.csv")]


def test_settings_of_a_block_are_those_of_all_paths_opened_in_it(ground: S3Ground) -> None:
    ground.put("a.csv")
    with reached_by(FileAccess(ground.files._settings)):  # type: ignore[attr-defined]
        files = open_filesystem(ground.root.replace("s3a://", "s3://"))

    assert files.list(ground.root).files.paths == [ground.path("a.csv")]
    assert files.uri(ground.root) == ground.root.replace("s3a://", "s3://")
