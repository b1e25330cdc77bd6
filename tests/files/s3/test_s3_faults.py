"""What the network and AWS do to a listing: it is whole and in order, or it is an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from math import ceil

import pytest

from airflow_bookmarks.core.errors import SourceError, SourceMissingError
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.files.filesystem import FileSystemError
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from tests.files.s3.s3_ground import settings_for
from tests.files.s3.s3_stand_in import Change, CutOff, Pass, Refuse, StandIn, stand_in

ROOT = "s3a://lake/raw"


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with stand_in() as served:
        yield served


@pytest.fixture
def s3(server: StandIn) -> StandIn:
    server.keys.clear()
    server.times.clear()
    server.faults.clear()
    server.seen.clear()
    server.always = Pass()
    return server


@pytest.fixture
def files(s3: StandIn) -> S3FileSystem:
    return S3FileSystem(settings_for(s3.url))


def hold_pages(s3: StandIn, pages: int) -> list[str]:
    """Let so many pages of keys be there; return their paths."""
    s3.hold(f"raw/part-{i:06d}.csv" for i in range(pages * 1000))
    return [f"s3a://lake/{key}" for key in s3.keys]


def without(end: bytes) -> Change:
    return Change(lambda body: body.replace(end, b""))


# ---- requests


@pytest.mark.parametrize("keys", [1, 1000, 1001, 4000])
def test_listing_takes_one_request_for_each_thousand_keys_and_no_other(
    s3: StandIn, files: S3FileSystem, keys: int
) -> None:
    s3.hold(f"raw/part-{i:06d}.csv" for i in range(keys))

    assert len(files.list(ROOT).files) == keys

    assert s3.methods == ["GET"] * ceil(keys / 1000)


def test_large_listing_is_whole_in_order_and_takes_hardly_more_requests(s3: StandIn, files: S3FileSystem) -> None:
    paths = hold_pages(s3, 30)

    listing = files.list(ROOT).files

    assert listing.paths == paths
    assert "HEAD" not in s3.methods
    assert len(s3.methods) <= 60  # one by one it were 30: the fewer pages, the more the cuts count
    assert {info.modified_ms for info in listing} == {1_356_998_400_000}


def test_single_file_takes_no_head(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(["raw", "raw-2"])

    assert files.list(ROOT).files.paths == [ROOT]
    assert s3.methods == ["GET", "GET"]


def test_keys_that_xml_cannot_say_are_listed(s3: StandIn, files: S3FileSystem) -> None:
    keys = ["raw/a\x01b.csv", "raw/c\rd.csv", "raw/e\n.csv", "raw/f+g h%20.csv", "raw/\U0001f6eb\ufffd.csv"]
    s3.hold(keys)

    assert files.list(ROOT).files.paths == [f"s3a://lake/{key}" for key in s3.keys]


# ---- what is tried again


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(503, "SlowDown"),
        Refuse(500, "InternalError"),
        CutOff(),
        without(b"</ListBucketResult>"),
        without(b"<IsTruncated>true</IsTruncated>"),
        Change(lambda body: body[:5000]),
        Change(lambda body: body.replace(b"T00:00:00.000Z", b"")[:-1]),
        Change(lambda _: b""),
        Change(lambda _: b"<html>a proxy's</html>"),
    ],
    ids=[
        "throttled",
        "broken inside",
        "connection lost",
        "end lost",
        "more or not",
        "cut",
        "no times",
        "empty",
        "no listing",
    ],
)
def test_fault_that_passes_costs_a_request_and_no_key(s3: StandIn, files: S3FileSystem, fault: Refuse | CutOff) -> None:
    paths = hold_pages(s3, 3)
    s3.befall(Pass(), fault)

    assert files.list(ROOT).files.paths == paths
    assert len(s3.methods) == 4


def test_error_that_comes_as_a_success_is_tried_again(s3: StandIn, files: S3FileSystem) -> None:
    paths = hold_pages(s3, 2)
    s3.befall(Pass(), Change(lambda _: b'<?xml version="1.0"?><Error><Code>InternalError</Code></Error>'))

    assert files.list(ROOT).files.paths == paths


# ---- what is an error


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (CutOff(), "cut off or damaged"),
        (without(b"</ListBucketResult>"), "cut off or damaged"),
        (Change(lambda body: body.replace(b"part-000999", b"part-000500")), "strictly increasing"),
        (Change(lambda body: body.replace(b"raw/part-001", b"raw/part-000")), "does not come after"),
        (Change(lambda body: body.replace(b"<Key>raw/", b"<Key>raw2/")), "do not begin with"),
        (
            Change(lambda _: b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
            "empty and says that there is more",
        ),
        (Refuse(403, "AccessDenied"), "s3:ListBucket"),
        (Refuse(403, "InvalidAccessKeyId"), "credentials are not accepted"),
        (Refuse(403, "SignatureDoesNotMatch"), "credentials are not accepted"),
        (Refuse(404, "NoSuchBucket"), "no such bucket"),
        (Refuse(400, "AuthorizationHeaderMalformed"), "another region"),
    ],
    ids=["lost", "end lost", "twice", "again", "others", "nothing more", "403", "key", "signature", "bucket", "region"],
)
def test_listing_that_ends_in_the_middle_is_an_error_and_never_a_whole(
    s3: StandIn, files: S3FileSystem, fault: Refuse | CutOff, said: str
) -> None:
    hold_pages(s3, 3)
    s3.befall(*([Pass()] * (0 if said == "strictly increasing" else 1)), *([fault] * 30))

    with pytest.raises(FileSystemError, match=said) as caught:
        files.list(ROOT)

    assert isinstance(caught.value, SourceError)
    assert not isinstance(caught.value, SourceMissingError)
    assert "Nothing" in str(caught.value) or "not taken for the whole" in str(caught.value)


def test_throttling_that_does_not_end_is_an_error_that_says_so(
    s3: StandIn, files: S3FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_bookmarks.files.s3.client.ATTEMPTS", 2)
    s3.always = Refuse(503, "SlowDown")
    throttled = S3FileSystem(settings_for(s3.url, ("another", "client")))

    with pytest.raises(FileSystemError, match=r"throttles.*spark\.bookmarks\.s3\.connections"):
        throttled.list(ROOT)

    assert s3.methods == ["GET", "GET"]


def test_fault_in_one_of_many_parts_fails_the_whole_listing(s3: StandIn, files: S3FileSystem) -> None:
    hold_pages(s3, 20)
    s3.befall(*[Pass()] * 8, *[Refuse(403, "AccessDenied")] * 30)

    with pytest.raises(FileSystemError, match="access denied"):
        files.list(ROOT)


def test_forbidden_file_is_not_taken_for_one_that_is_gone(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(["raw/a.csv"])
    s3.befall(Refuse(403, "Forbidden"))

    with pytest.raises(FileSystemError, match="looks like one that is forbidden"):
        files.stat([f"{ROOT}/a.csv"])


# ---- late objects


def test_object_stamped_hours_before_it_appears_is_new(s3: StandIn, files: S3FileSystem) -> None:
    # S3 stamps a multipart upload with the time at which it began.
    s3.hold(["raw/a.csv"], "2013-01-01T12:00:00.000Z")
    ledger = Ledger.empty().add(files.list(ROOT).files)

    s3.hold(["raw/late.csv"], "2013-01-01T03:00:00.000Z")

    listing: Listing = files.list(ROOT).files
    assert listing.paths == [f"{ROOT}/a.csv", f"{ROOT}/late.csv"]
    assert [Known(verdict) for verdict in ledger.classify(listing)] == [Known.KNOWN, Known.NEW]
    assert listing.file(1).modified_ms < listing.file(0).modified_ms


# ---- a store that says of a deletion that the object is gone; S3 itself says that all is well


GONE = Refuse(404, "NoSuchKey")


def test_file_that_another_deletes_at_the_same_time_is_deleted(s3: StandIn, files: S3FileSystem) -> None:
    s3.befall(GONE)

    assert files.delete(f"{ROOT}/a.csv")


def test_file_that_another_publisher_moves_at_the_same_time_is_moved(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(["raw/a.csv"])
    s3.befall(Pass(), Pass(), GONE)

    assert files.move(f"{ROOT}/a.csv", f"{ROOT}/b.csv")

    assert s3.methods == ["HEAD", "PUT", "DELETE"]


@pytest.mark.parametrize(("code", "is_fine"), [("NoSuchKey", True), ("AccessDenied", False)])
def test_key_that_another_removes_at_the_same_time_is_removed(
    s3: StandIn, files: S3FileSystem, code: str, is_fine: bool
) -> None:
    s3.hold(["raw/a.csv"])
    answer = f"<DeleteResult><Error><Key>raw/a.csv</Key><Code>{code}</Code></Error></DeleteResult>"
    s3.befall(Pass(), Change(lambda _: answer.encode()))

    with nullcontext() if is_fine else pytest.raises(FileSystemError, match="S3 refused 1 keys"):
        files.remove(ROOT)


def test_deletion_that_is_denied_is_an_error(s3: StandIn, files: S3FileSystem) -> None:
    s3.befall(Refuse(403, "AccessDenied"))

    with pytest.raises(FileSystemError, match="can't be deleted: access denied"):
        files.delete(f"{ROOT}/a.csv")
