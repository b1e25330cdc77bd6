"""Keys that people and programs make: 10,000 of them listed as they are, and hundreds through real servers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import boto3.session
import pytest

from airflow_bookmarks.files.s3.requests import PageRequests, pages_of
from airflow_bookmarks.files.s3.settings import S3Settings
from tests.files.s3.s3_ground import BUCKET, S3Ground, client_for, s3_ground, settings_for
from tests.files.s3.s3_stand_in import stand_in

_ODD = " +%=,&;:@!?*#~^|\\'\"`<>()[]{}$\t\n\x7fäßéñçøЖ中日本語한🙂𝛑\u200b\u0301"
_LONGEST = 1024  # bytes of a key
_SEED = 20130101


def odd_names(count: int, characters: str = _ODD, longest: int = _LONGEST - len("odd/")) -> Sequence[str]:
    """Return so many names, all different and none hidden: short ones, long ones, and one of each odd character."""
    chance = random.Random(_SEED)
    names = {f"a{character}b": None for character in characters}
    names |= {f"a%{character}": None for character in characters}
    while len(names) < count:
        length = chance.choice([1, 3, 8, 30, 300])
        text = "".join(chance.choice(characters + "abc019-_.") for _ in range(length))
        names[f"x{len(names)}{text}".encode()[:longest].decode(errors="ignore") + "z"] = None
    return list(names)[:count]


@pytest.fixture(params=["moto", pytest.param("versitygw", marks=pytest.mark.thorough)])  # the latter is compiled
def ground(request: pytest.FixtureRequest, aws_session: boto3.session.Session) -> S3Ground:
    settings: S3Settings = request.getfixturevalue(f"{request.param}_settings")
    return s3_ground(client_for(aws_session, settings), settings, f"odd-{request.param}")


@pytest.mark.seldom
def test_ten_thousand_odd_keys_are_listed_as_boto3_lists_them(aws_session: boto3.session.Session) -> None:
    names = odd_names(10_000)
    with stand_in() as bucket:
        bucket.hold(f"odd/{name}" for name in names)
        settings = settings_for(bucket.url)
        there = s3_ground(client_for(aws_session, settings), settings, "odd")
        listed = there.files.list(there.root)
        pages = there.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="odd/")
        plain = [one["Key"] for page in pages for one in page["Contents"]]
    assert len(listed.files) == 10_000
    assert dict(listed.skipped) == {}
    assert [path.removeprefix(f"s3a://{BUCKET}/") for path in listed.files.paths] == plain
    assert set(plain) == {f"odd/{name}" for name in names}


@pytest.mark.seldom
def test_odd_keys_are_stored_listed_read_moved_and_deleted(ground: S3Ground) -> None:
    # versitygw keeps keys as paths of a disk: names of up to 255 bytes. moto answers 404 where a key has a line break.
    names = odd_names(400, _ODD.replace("\n", ""), longest=200)
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda name: ground.put(f"raw/{name}", name.encode()), names))
        assert sorted(ground.files.list(ground.path("raw")).files.paths) == sorted(paths)
        found = ground.files.stat(paths)
        assert [None if one is None else one.path for one in found] == paths
        assert all(pool.map(lambda name: _moved(ground, name), names))
    moved = ground.files.list(ground.path("done")).files
    assert sorted(moved.paths) == sorted(ground.path(f"done/{name}") for name in names)
    ground.files.remove(ground.path("done"))
    assert (
        ground.client.list_objects_v2(Bucket=BUCKET, Prefix=ground.path("").partition(f"{BUCKET}/")[2])["KeyCount"] == 0
    )


def test_walk_by_pages_of_one_entry_finds_each_key_and_folder_once(ground: S3Ground) -> None:
    ground.put_all("a", "b-", "b/x", "b/y/z", "b0", "b0z", "é/x", "é0")
    root = ground.path("").removeprefix(f"s3a://{BUCKET}/")
    fetch = PageRequests(ground.files._clients.of(BUCKET), BUCKET)  # type: ignore[attr-defined]

    pages = [*pages_of(fetch, root, delimiter="/", max_keys=1)]

    entries = [name.removeprefix(root) for page in pages for name in [*page.keys, *page.folders]]
    assert entries == ["a", "b-", "b/", "b0", "b0z", "é/", "é0"]


def _moved(ground: S3Ground, name: str) -> bool:
    target = ground.path(f"done/{name}")
    return ground.files.move(ground.path(f"raw/{name}"), target) and _content(ground, target) == name.encode()


def _content(ground: S3Ground, path: str) -> bytes:
    with ground.files.open(path) as file:
        return file.read()
