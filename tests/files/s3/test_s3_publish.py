"""Publishing in S3: several moves at a time, each file once, to be repeated after any error; and cleaning there."""

from __future__ import annotations

import logging
import re
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.s3.settings import S3Settings
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.protocol.publish import steps_of
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.files.publish import move_all
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.files.s3.s3_ground import BUCKET, S3Ground, client_for, s3_ground
from tests.lifecycle.shop import Shop


@pytest.fixture
def ground(moto_settings: S3Settings, aws_session: boto3.session.Session) -> Iterator[S3Ground]:
    with reached_by(FileAccess(moto_settings)):
        yield s3_ground(client_for(aws_session, moto_settings), moto_settings, uuid.uuid4().hex)


def stage(ground: S3Ground, count: int) -> list[tuple[str, str]]:
    """Stage so many files; return their moves."""
    names = [f"part-{i:03d}.csv" for i in range(count)]
    return [(ground.put(f"_bookmarks/1.1/{n}", n.encode()), ground.path(f"x=1/run-1.1-{n}")) for n in names]


def changes(ground: S3Ground, moves: Sequence[tuple[str, str]]) -> FileChanges:
    return FileChanges(moves, (), (), ground.files)


def names_of(moves: Sequence[tuple[str, str]], ground: S3Ground) -> list[str]:
    return [target.removeprefix(f"{ground.root}/") for _, target in moves]


class Requests:
    """Counts what a file system sends while it is entered, and how many requests are under way at most."""

    def __init__(self, ground: S3Ground) -> None:
        self.by_name: Counter[str] = Counter()
        self.most = self._under_way = 0
        self._lock = threading.Lock()
        self._events = ground.files._clients.of(BUCKET).meta.events  # type: ignore[attr-defined]

    def __enter__(self) -> Requests:
        self._events.register("before-send.s3", self._begin)
        self._events.register("response-received.s3", self._end)
        return self

    def __exit__(self, *_: object) -> None:
        self._events.unregister("before-send.s3", self._begin)
        self._events.unregister("response-received.s3", self._end)

    def _begin(self, event_name: str, **_: Any) -> None:
        with self._lock:
            self.by_name[event_name.rpartition(".")[2]] += 1
            self._under_way += 1
            self.most = max(self.most, self._under_way)

    def _end(self, **_: Any) -> None:
        with self._lock:
            self._under_way -= 1


# ---- moves


def test_publish_takes_three_requests_for_each_file_several_at_a_time(ground: S3Ground) -> None:
    moves = stage(ground, 40)
    points: list[Failpoint] = []

    with Requests(ground) as requests:
        assert move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment(at=points.append))) == 40

    assert ground.names() == names_of(moves, ground)
    assert ground.files.folders(ground.root) == ["x=1"]
    assert requests.by_name == {"HeadObject": 40, "CopyObject": 40, "DeleteObject": 40}
    assert 1 < requests.most <= 8  # the connections of these settings
    assert points == [Failpoint.MOVED] * 40


def test_publish_that_ended_half_way_is_finished_by_the_next_one(ground: S3Ground) -> None:
    moves = stage(ground, 30)

    class KilledError(Exception):
        pass

    def kill_after_ten(point: Failpoint) -> None:
        points.append(point)
        if len(points) == 10:
            raise KilledError

    points: list[Failpoint] = []
    with pytest.raises(KilledError):
        move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment(at=kill_after_ten)))
    assert 10 <= len(ground.names()) < 30

    assert move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment())) == 30
    assert move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment())) == 30

    assert ground.names() == names_of(moves, ground)


def test_publishers_at_the_same_moves_leave_each_file_once_and_whole(ground: S3Ground) -> None:
    moves = stage(ground, 30)

    with ThreadPoolExecutor(3) as publishers:
        moved = list(
            publishers.map(lambda _: move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment())), range(3))
        )

    assert moved == [30] * 3
    assert ground.names() == names_of(moves, ground)
    assert all(ground.content(name).decode() in name for name in ground.names())


def test_file_that_cannot_be_moved_stops_the_publish_and_leaves_the_rest_staged_or_moved(ground: S3Ground) -> None:
    moves = stage(ground, 30)
    broken = [*moves]
    broken[5] = (moves[5][0], "s3a://no-such-bucket-here/a.csv")

    with pytest.raises(PublishError, match=r"no such bucket.*stays due"):
        move_all(changes(ground, broken), "run 1", steps_of(RunEnvironment()))
    there = ground.files.list(ground.path("_bookmarks"), recursive=True).files.paths
    assert len(there) + len(ground.names()) == 30

    move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment()))

    assert ground.names() == names_of(moves, ground)


def test_staged_file_that_somebody_removed_is_named(ground: S3Ground) -> None:
    moves = stage(ground, 20)
    ground.files.delete(moves[7][0])

    with pytest.raises(PublishError, match=r"1 of 20 staged files are gone.*part-007"):
        move_all(changes(ground, moves), "run 1", steps_of(RunEnvironment()))


def test_long_publish_tells_how_far_it_is(ground: S3Ground, caplog: pytest.LogCaptureFixture) -> None:
    seconds = iter(range(0, 10_000, 4))  # each file takes four of them
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        move_all(
            changes(ground, stage(ground, 9)), "run 1", steps_of(RunEnvironment(monotonic=lambda: float(next(seconds))))
        )

    assert re.findall(r"publishing run 1: \d of 9 files", caplog.text) == [
        f"publishing run 1: {done} of 9 files" for done in (3, 6, 9)
    ]


# ---- what was staged


def test_staged_output_of_many_partitions_is_listed_by_two_requests(ground: S3Ground) -> None:
    folder = ground.path("_bookmarks/1.1/out")
    ground.put_all(*(f"_bookmarks/1.1/out/x={i}/part.csv" for i in range(30)), "_bookmarks/1.1/out/_SUCCESS")

    with Requests(ground) as requests:
        staged = collect_staged(ground.files, folder, ground.root, "t", Mode.APPEND, rows=30, schema=None)

    assert len(staged.moves) == 30
    assert requests.by_name == {"ListObjectsV2": 1, "HeadObject": 1}  # the mark of Spark is looked at


@pytest.mark.parametrize("names", [[".x=1/part.csv"], ["y=1/.x=1/part.csv", "_SUCCESS"]])
def test_partition_that_no_reader_would_see_is_refused(ground: S3Ground, names: list[str]) -> None:
    folder = ground.path("_bookmarks/1.1/out")
    ground.put_all(*(f"_bookmarks/1.1/out/{name}" for name in [*names, "x=2/part.csv"]))

    with pytest.raises(PublishError, match="readers take for a hidden file"):
        collect_staged(ground.files, folder, ground.root, "t", Mode.APPEND, rows=2, schema=None)


def test_overwrite_of_partitions_replaces_what_those_that_were_written_hold(ground: S3Ground) -> None:
    folder = ground.path("_bookmarks/1.1/out")
    ground.put_all(*(f"_bookmarks/1.1/out/x={i}/part.csv" for i in range(5)))
    ground.put_all(*(f"x={i}/old-{j}.csv" for i in range(8) for j in range(2)))

    staged = collect_staged(ground.files, folder, ground.root, "t", Mode.OVERWRITE_PARTITIONS, rows=5, schema=None)

    assert staged.deletes == [ground.path(f"x={i}/old-{j}.csv") for i in range(5) for j in range(2)]


# ---- a job with outputs on two file systems


def test_clean_takes_back_what_was_published_on_every_file_system(ground: S3Ground, tmp_path: Path) -> None:
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test")
    store.init()
    shop = Shop(tmp_path, store)
    run = shop.begin()
    targets = {"here": str(tmp_path / "out"), "there": ground.root}
    for name, target in targets.items():
        folder = run.place(name, StagingRequest("files", target))
        if name == "here":
            Path(folder).mkdir(parents=True)
            Path(folder, "part.csv").write_text("a\n")
        else:
            ground.put(f"{folder.removeprefix(f'{ground.root}/')}/part.csv", b"a\n")
        files = open_filesystem(target)
        run.staged(
            name, collect_staged(files, folder, target, run.file_token, Mode.APPEND, rows=1, schema='{"fields":[]}')
        )
    run.commit()
    assert [len(open_filesystem(target).list(target).files) for target in targets.values()] == [1, 1]

    reset(store, "copy", reason="again", who="ada", clean=True)
    shop.begin().abort("it only had to clean")

    assert list(Path(targets["here"]).glob("*.csv")) == []
    assert (
        ground.client.list_objects_v2(Bucket=BUCKET, Prefix=ground.root.removeprefix(f"s3a://{BUCKET}/")).get(
            "Contents", []
        )
        == []
    )
