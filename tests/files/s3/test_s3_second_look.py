"""The second look at planned files before the commit: at most one more listing, and it sees what looks at each see."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import boto3.session
import numpy as np
import pytest

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.files.s3.settings import S3Settings
from airflow_bookmarks.sources.files.commit import recheck_files
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from tests.files.conformance import ODD_NAMES
from tests.files.s3.s3_ground import S3Ground, client_for, s3_ground, settings_for
from tests.files.s3.s3_stand_in import StandIn, stand_in

ROOT = "s3a://lake/raw"


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as served:
        yield served


@pytest.fixture
def ground(moto_settings: S3Settings, aws_session: boto3.session.Session) -> S3Ground:
    return s3_ground(client_for(aws_session, moto_settings), moto_settings, uuid.uuid4().hex)


def planned(source: FileSource, first: int) -> FilePlan:
    """Plan, and leave all but the `first` files to another run."""
    plan = source.plan(PlanInput())
    return FilePlan(plan.files.take(np.arange(first)), plan.roots, plan.listed, plan.known)


def test_many_files_are_looked_at_again_by_one_listing(server: StandIn) -> None:
    server.hold(f"raw/part-{i:06d}.csv" for i in range(3500))
    source = FileSource(S3FileSystem(settings_for(server.url)), [ROOT])
    plan = source.plan(PlanInput())
    server.seen.clear()

    assert source.recheck(plan).missing == ()

    assert server.methods == ["GET"] * 4  # of 1,000 keys each


def test_few_files_of_many_are_looked_at_one_by_one(server: StandIn) -> None:
    server.hold(f"raw/part-{i:06d}.csv" for i in range(3500))
    source = FileSource(S3FileSystem(settings_for(server.url)), [ROOT])
    plan = planned(source, 3)
    server.seen.clear()

    assert source.recheck(plan).missing == ()

    assert server.methods == ["HEAD"] * 3


def test_listing_finds_what_changed_and_what_went(ground: S3Ground) -> None:
    for name in ODD_NAMES:
        ground.put(f"raw/{name}", name.encode())
    source = FileSource(ground.files, [ground.path("raw")])
    plan = source.plan(PlanInput())
    assert source.recheck(plan).missing == ()

    ground.put("raw/a b.csv", b"changed")
    ground.put("raw/a+b.csv", b"a+b.csv")  # another time, the same content
    ground.put("raw/new.csv")
    ground.files.delete(ground.path("raw/日本語.csv"))

    assert set(source.recheck(plan).missing) == {ground.path("raw/a b.csv"), ground.path("raw/日本語.csv")}
    assert set(recheck_files(ground.files, plan).missing) == set(source.recheck(plan).missing)


def test_folder_that_went_whole_is_no_error_but_all_its_files_are_missing(ground: S3Ground) -> None:
    ground.put_all("one/a.csv", "one/b.csv", "one/c.csv", "two/d.csv")
    source = FileSource(ground.files, [ground.path("one"), ground.path("two")])
    plan = source.plan(PlanInput())

    ground.files.remove(ground.path("one"))

    assert set(source.recheck(plan).missing) == {ground.path(f"one/{name}.csv") for name in "abc"}
