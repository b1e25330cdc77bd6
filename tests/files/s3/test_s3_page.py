"""A page of a listing as stores write it: all that AWS may put in, and the little that others do."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from airflow_bookmarks.files.s3.page import Page, PageError, page_of, parse

FULL = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>lake</Name><Prefix>raw/</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>%2F</Delimiter>
  <EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>
  <Contents>
    <Key>raw/a+b%2B%C3%A9.csv</Key>
    <LastModified>2013-01-01T00:00:00.123Z</LastModified>
    <ETag>&quot;d41d8cd98f00b204e9800998ecf8427e-3&quot;</ETag>
    <ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>
    <Size>5497558138880</Size>
    <Owner><ID>75aa57f09aa0c8caeab4f8c24e99d10f8e7faeebf76c078efc7c6caea54ba06a</ID></Owner>
    <RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress></RestoreStatus>
    <StorageClass>STANDARD</StorageClass>
  </Contents>
  <CommonPrefixes><Prefix>raw/day%3D1/</Prefix></CommonPrefixes>
</ListBucketResult>"""

BARE = (
    "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Size>0</Size><Key> a+b%2B&lt;\n </Key>"
    "<LastModified>2013-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>"
)


def test_page_of_aws_is_read_whole() -> None:
    page = parse(FULL.encode())

    assert page.keys == ["raw/a b+é.csv"]
    assert page.sizes.tolist() == [5 * 1024**4]
    assert page.times_ms.tolist() == [1_356_998_400_123]
    assert page.etags == ["d41d8cd98f00b204e9800998ecf8427e-3"]
    assert page.folders == ["raw/day=1/"]
    assert page.is_truncated


def test_page_of_a_store_that_says_little_is_read_as_it_is() -> None:
    page = parse(BARE.encode())

    assert (page.keys, page.etags, page.times_ms.tolist()) == ([" a+b%2B<\n "], [None], [1_356_998_400_000])
    assert not page.is_truncated


def test_names_with_line_feeds_are_told_apart() -> None:
    row = "<Contents><Size>0</Size><Key>{}</Key><LastModified>2013-01-01T00:00:00Z</LastModified></Contents>"
    rows = "".join(row.format(key) for key in ("a%0A", "a%0Ab", "b"))
    body = f"<L><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>{rows}</L>"

    assert parse(body.encode()).keys == ["a\n", "a\nb", "b"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</ListBucketResult>", ""),
        ("<IsTruncated>true</IsTruncated>", ""),
        ("true</IsTruncated>", "perhaps</IsTruncated>"),
        ("<Size>5497558138880</Size>", ""),
        ("5497558138880", "5 TB"),
        ("2013-01-01T00:00:00.123Z", "Tue, 01 Jan 2013"),
        ("2013-01-01T00:00:00.123Z", "2013-01-01T00:00:00.123+01:00"),
        ("%C3%A9", "%C3"),
    ],
)
def test_page_of_which_a_part_is_missing_or_damaged_is_none(old: str, new: str) -> None:
    assert old in FULL

    with pytest.raises(PageError):
        parse(FULL.replace(old, new).encode())


@pytest.mark.parametrize(
    ("keys", "prefix", "after"),
    [(["b", "a"], "", ""), (["a", "a"], "", ""), (["a", "b"], "", "a"), (["a", "b"], "a", ""), (["a", "b"], "b", "")],
)
def test_page_that_was_not_asked_for_is_refused(keys: list[str], prefix: str, after: str) -> None:
    numbers = np.zeros(len(keys), np.int64)

    with pytest.raises(PageError):
        Page(keys, numbers, numbers, [None] * len(keys), [], False).check(prefix, after)


def test_folder_that_is_shown_once_more_is_left_out() -> None:
    none = np.zeros(0, np.int64)
    first = Page([], none, none, [], ["a/", "b/"], True)

    again = Page([], none, none, [], ["b/", "c/"], True)  # "b/" holds a key that begins with the last character of all

    assert again.without_passed(first.end).folders == ["c/"]
    assert again.without_passed("").folders == ["b/", "c/"]


def test_page_that_an_older_botocore_has_parsed_is_the_same() -> None:
    item = {"Key": "a%0Ab+c", "Size": 7, "LastModified": datetime(2013, 1, 1, 0, 0, 0, 5000, UTC), "ETag": '"e"'}
    bare = {"Key": "d", "Size": 0, "LastModified": datetime(2013, 1, 1, tzinfo=UTC)}

    page = page_of(
        {"Contents": [item, bare], "CommonPrefixes": [{"Prefix": "f%2F"}], "EncodingType": "url", "IsTruncated": True}
    )

    assert (page.keys, page.folders, page.is_truncated) == (["a\nb c", "d"], ["f/"], True)
    assert (page.sizes.tolist(), page.times_ms.tolist()) == ([7, 0], [1356998400005, 1356998400000])
    assert page.etags == ["e", None]


def test_page_that_an_older_botocore_has_parsed_in_part_is_none() -> None:
    with pytest.raises(PageError, match="no 'IsTruncated'"):
        page_of({"Contents": []})
