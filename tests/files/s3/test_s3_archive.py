"""Deleting and archiving read files in S3, where a folder is there only as long as a file is."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.s3.settings import S3Settings
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.files.s3.s3_ground import S3Ground, client_for, s3_ground
from tests.lifecycle.shop import Shop


@pytest.fixture
def ground(moto_settings: S3Settings, aws_session: boto3.session.Session) -> Iterator[S3Ground]:
    with reached_by(FileAccess(moto_settings)):
        yield s3_ground(client_for(aws_session, moto_settings), moto_settings, uuid.uuid4().hex)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test")
    store.init()
    return Shop(tmp_path, store)


def run(shop: Shop, ground: S3Ground, disposal: Disposal) -> list[str]:
    """Make one whole run over `raw`; return the names of the files that it read."""
    driver = shop.begin()
    driver.dispose("raw", disposal)
    options = FileOptions(empties=not disposal.is_kept)
    plan = driver.plan("raw", FileSource(ground.files, [ground.path("raw")], options))
    driver.commit()
    return [path.removeprefix(ground.path("raw/")) for path in plan.files.paths]


def names(ground: S3Ground) -> list[str]:
    return sorted(
        path.removeprefix(f"{ground.root}/") for path in ground.files.list(ground.root, recursive=True).files.paths
    )


def test_folder_that_went_with_its_last_file_is_an_empty_one(shop: Shop, ground: S3Ground) -> None:
    ground.put("raw/a b+c%.csv")
    assert run(shop, ground, Disposal("delete")) == ["a b+c%.csv"]

    assert run(shop, ground, Disposal("delete")) == []
    assert pending(shop.store, "copy").is_empty

    ground.put("raw/b.csv")
    assert run(shop, ground, Disposal("delete")) == ["b.csv"]


def test_folder_that_never_was_there_is_still_an_error(shop: Shop, ground: S3Ground) -> None:
    ground.put("other/a.csv")

    driver = shop.begin()
    with pytest.raises(SourceMissingError):
        driver.plan("raw", FileSource(ground.files, [ground.path("raw")], FileOptions(empties=True)))
    driver.abort("missing")


def test_files_are_archived_by_copies_in_the_bucket(shop: Shop, ground: S3Ground) -> None:
    ground.put("raw/a.csv", b"monday")
    run(shop, ground, Disposal("archive", ground.path("done")))
    ground.put("raw/a.csv", b"tuesday")
    run(shop, ground, Disposal("archive", ground.path("done")))

    assert names(ground) == ["done/a.csv", "done/run-2.2.copy.a.csv"]


def test_equal_file_that_is_delivered_again_is_read_and_deleted_again(shop: Shop, ground: S3Ground) -> None:
    ground.put_all("raw/orders.csv", "other.csv")
    run(shop, ground, Disposal("delete"))
    time.sleep(1.1)  # S3 tells times in seconds
    ground.put("raw/orders.csv")

    (seen,) = pending(shop.store, "copy").contexts
    assert seen.files == 1
    assert run(shop, ground, Disposal("delete")) == ["orders.csv"]
    assert names(ground) == ["other.csv"]


def test_copy_whose_source_was_left_is_not_archived_twice(shop: Shop, ground: S3Ground) -> None:
    ground.put("raw/a.csv", b"monday")
    ground.put("done/a.csv", b"monday")

    run(shop, ground, Disposal("archive", ground.path("done")))

    assert names(ground) == ["done/a.csv"]


def test_overwritten_object_is_left(shop: Shop, ground: S3Ground) -> None:
    ground.put("raw/a.csv", b"monday")
    driver = shop.begin()
    driver.dispose("raw", Disposal("delete"))
    driver.plan("raw", FileSource(ground.files, [ground.path("raw")]), on_missing="skip")
    ground.put("raw/b.csv", b"new")
    ground.put("raw/a.csv", b"tuesday")
    driver.commit()

    assert names(ground) == ["raw/a.csv", "raw/b.csv"]
