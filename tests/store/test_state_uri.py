"""Blobs under `state_uri`: what is too large for the table lies in a folder, and is found, checked and collected."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    OptionError,
    StateCorruptError,
    StoreAccessError,
)
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.objects import FileObjects
from airflow_bookmarks.files.s3.settings import S3Settings
from airflow_bookmarks.lifecycle.maintenance.blobs import BLOB_GRACE
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.policies import policy
from airflow_bookmarks.spark.arguments import Arguments
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.blobs import CHUNK_BYTES, OBJECT_BYTES, BlobMissingError
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from airflow_bookmarks.store.table import Delete, Operation, Put, Table
from airflow_bookmarks.store.transitions import collection
from airflow_bookmarks.store.uri import StoreAddress
from benchmarks.request import RecordingTable
from tests.files.s3.s3_ground import client_for, settings_for
from tools.patience import STUCK_S

BUCKET = "state"
T0 = datetime(2013, 9, 1, 6, 0, tzinfo=UTC)
LATER = T0 + BLOB_GRACE + timedelta(minutes=1)

BACKENDS = ["sqlite-file", pytest.param("dynamodb-local", marks=pytest.mark.dynamodb_local)]
on_both_tables = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture(scope="module")
def s3_settings(moto_url: str, aws_session: boto3.session.Session) -> S3Settings:
    settings = settings_for(moto_url)
    client_for(aws_session, settings).create_bucket(Bucket=BUCKET)
    return settings


@pytest.fixture(params=["local", "s3"])
def state_uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Name a folder that is the test's own."""
    if request.param == "local":
        yield str(tmp_path / "state")
        return
    with reached_by(FileAccess(request.getfixturevalue("s3_settings"))):
        yield f"s3://{BUCKET}/{uuid.uuid4().hex}"


@dataclass
class Clock:
    now: datetime = T0

    def __call__(self) -> datetime:
        return self.now


@dataclass
class World:
    """Stores on one table, by one clock."""

    table: Table
    state_uri: str
    clock: Clock = field(default_factory=Clock)
    objects: FileObjects = field(default_factory=FileObjects)

    def store(self, *, state_uri: str | None = "", namespace: str = "test") -> BookmarkStore:
        where = self.state_uri if state_uri == "" else state_uri
        store = BookmarkStore(self.table, namespace, clock=self.clock, state_uri=where)
        store.init()
        return store

    def collect(self, store: BookmarkStore, at: datetime = LATER) -> None:
        self.clock.now = at
        self.collected = collect(store, clock=self.clock)


@pytest.fixture
def world(table: Table, state_uri: str) -> World:
    return World(table, state_uri)


def large(seed: int = 1, size: int = OBJECT_BYTES + 1) -> bytes:
    return bytes([seed]) * size


def items(store: BookmarkStore) -> list[dict[str, object]]:
    return [dict(item) for _, item in store.table.scan(f"{store.namespace}#BLOB#", names=["stamped_at"])]


# ---- where it lies


@on_both_tables
def test_large_blob_lies_in_the_folder_and_the_table_names_it(world: World) -> None:
    store = world.store()

    payload = store.blobs.put(large())

    (item,) = store.table.get([store.blobs.proof(large()).key]).values()
    assert item["uri"] == store.blobs.objects()[0]
    assert str(item["uri"]).startswith(f"{world.state_uri}/test/blobs/")
    assert payload.sha256 in str(item["uri"])
    assert "data" not in item
    assert store.blobs.get(payload) == large()


def test_blob_up_to_the_limit_stays_in_the_table(world: World) -> None:
    store = world.store()

    payload = store.blobs.put(large(size=OBJECT_BYTES))

    assert store.blobs.objects() == []
    assert store.blobs.get(payload) == large(size=OBJECT_BYTES)


def test_without_state_uri_everything_lies_in_the_table(world: World) -> None:
    store = world.store(state_uri=None)

    payload = store.blobs.put(large())

    assert (payload.chunks, store.blobs.get(payload), store.blobs.objects()) == (3, large(), [])


def test_namespaces_share_a_state_uri_and_no_object(world: World) -> None:
    one, other = world.store(), world.store(namespace="other")

    one.blobs.put(large())
    payload = other.blobs.put(large())

    assert len(one.blobs.objects()) == len(other.blobs.objects()) == 1
    assert "/other/blobs/" in other.blobs.objects()[0]
    assert other.blobs.get(payload) == large()


# ---- put again


@on_both_tables
def test_put_again_writes_no_second_object_and_stamps_anew(world: World) -> None:
    store = world.store()
    store.blobs.put(large())
    before = store.blobs.objects()
    world.clock.now = LATER

    store.blobs.put(large())

    assert store.blobs.objects() == before
    assert [item["stamped_at"] for item in items(store)] == ["2013-09-08T06:01:00.000000Z"]


def test_put_again_writes_anew_what_somebody_has_deleted(world: World) -> None:
    store = world.store()
    payload = store.blobs.put(large())
    world.objects.delete(store.blobs.objects()[0])

    store.blobs.put(large())

    assert store.blobs.get(payload) == large()


@on_both_tables
def test_blob_of_the_table_that_is_put_again_becomes_an_object(world: World) -> None:
    in_table = world.store(state_uri=None).blobs.put(large())

    store = world.store()
    store.blobs.put(large())

    assert len(store.blobs.objects()) == 1
    assert store.blobs.get(in_table) == large()
    world.collect(store)
    assert (items(store), store.blobs.objects()) == ([], [])  # its chunks of before went as well


# ---- a state_uri that is not set any more


@on_both_tables
def test_objects_of_a_state_uri_that_is_not_set_any_more_are_read(world: World) -> None:
    payload = world.store().blobs.put(large())

    assert world.store(state_uri=None).blobs.get(payload) == large()
    assert world.store(state_uri=f"{world.state_uri}/moved").blobs.get(payload) == large()


@on_both_tables
def test_without_state_uri_a_blob_that_was_an_object_is_put_into_the_table(world: World) -> None:
    payload = world.store().blobs.put(large())
    store = world.store(state_uri=None)

    again = store.blobs.put(large())
    store.table.transact([store.blobs.proof(large())])
    world.objects.delete(world.store().blobs.objects()[0])

    assert store.blobs.get(again) == store.blobs.get(payload) == large()


def test_blob_is_whole_at_each_moment_while_it_goes_back_into_the_table(tmp_path: Path) -> None:
    world = World(SqliteTable(tmp_path / "bookmarks.db"), str(tmp_path / "state"))
    payload = world.store().blobs.put(large())
    seen: list[bool] = []

    class Watched(SqliteTable):
        def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
            super().transact(operations, token=token)
            seen.append(world.store().blobs.get(payload) == large())

    BookmarkStore(Watched(tmp_path / "bookmarks.db"), "test").blobs.put(large())

    assert seen == [True] * 3


# ---- damage


@pytest.mark.parametrize("content", [b"", large()[:-1], large(2)], ids=["empty", "truncated", "other"])
def test_object_that_was_changed_is_an_error(world: World, content: bytes) -> None:
    store = world.store()
    payload = store.blobs.put(large())
    world.objects.put(store.blobs.objects()[0], content)

    with pytest.raises(StateCorruptError, match="do not match their checksum"):
        store.blobs.get(payload)


@on_both_tables
def test_object_that_is_gone_is_an_error_that_names_it_and_never_empty(world: World) -> None:
    store = world.store()
    payload = store.blobs.put(large())
    (uri,) = store.blobs.objects()
    world.objects.delete(uri)

    with pytest.raises(BlobMissingError, match="is not there") as raised:
        store.blobs.get(payload)

    assert uri in str(raised.value)
    assert isinstance(raised.value, StateCorruptError)


@on_both_tables
def test_chunk_that_is_gone_is_an_error(world: World) -> None:
    store = world.store(state_uri=None)
    payload = store.blobs.put(large())
    last = store.blobs.proof(large()).key
    store.table.transact([Delete(last)])

    with pytest.raises(BlobMissingError, match="has 2 of 3 chunks"):
        store.blobs.get(payload)


def test_who_has_no_access_is_told_so_and_nothing_refers_to_it(table: Table, s3_settings: S3Settings) -> None:
    with reached_by(FileAccess(s3_settings)):
        store = World(table, "s3://no-such-bucket/state").store()
        with pytest.raises(StoreAccessError, match="s3:PutObject") as raised:
            store.blobs.put(large())

    assert "s3://no-such-bucket/state/test/blobs/" in str(raised.value)
    assert "No state was changed" in str(raised.value)
    assert items(store) == []


def test_folder_that_cannot_be_entered_is_no_missing_blob(tmp_path: Path) -> None:
    world = World(SqliteTable(tmp_path / "bookmarks.db"), str(tmp_path / "state"))
    payload = world.store().blobs.put(large())
    os.rename(tmp_path / "state", tmp_path / "elsewhere")
    (tmp_path / "state").write_text("a file where the folder was")

    with pytest.raises(StoreAccessError, match="can't be read"):
        world.store().blobs.get(payload)


# ---- many at a time


def test_blobs_are_asked_for_together_and_not_one_by_one(tmp_path: Path) -> None:
    table = RecordingTable(SqliteTable(tmp_path / "bookmarks.db"))
    store = World(table, str(tmp_path / "state")).store(state_uri=None)
    small = [store.blobs.put(bytes([n]) * 20_000) for n in range(10)]
    chunked = [store.blobs.put(large(n, 8 * CHUNK_BYTES)) for n in range(10, 13)]
    table.take()

    found = store.blobs.get_named([payload.sha256 for payload in (*small, *chunked)])

    # One for the first chunks of all, and one for each ten of the 21 that are left.
    assert [request.kind for request in table.take()] == ["get"] * 4
    assert [found[p.sha256] for p in chunked] == [large(n, 8 * CHUNK_BYTES) for n in range(10, 13)]


def test_objects_are_fetched_several_at_a_time(tmp_path: Path) -> None:
    world = World(SqliteTable(tmp_path / "bookmarks.db"), str(tmp_path / "state"))
    payloads = [world.store().blobs.put(large(n)) for n in range(4)]
    met = threading.Barrier(4, timeout=STUCK_S)

    class Meeting(FileObjects):
        def get(self, uri: str, most_bytes: int) -> bytes:
            met.wait()  # passes when four are here at the same time
            return super().get(uri, most_bytes)

    store = BookmarkStore(world.table, "test", state_uri=world.state_uri, objects=Meeting())
    found = store.blobs.get_named([payload.sha256 for payload in payloads])

    assert [found[payload.sha256] for payload in payloads] == [large(n) for n in range(4)]


@pytest.mark.parametrize("backend", ["moto", pytest.param("dynamodb-local", marks=pytest.mark.dynamodb_local)])
def test_ledger_of_sixteen_megabytes_is_read_whole_from_the_table(table: Table) -> None:
    store = BookmarkStore(table, "test")
    store.init()
    data = os.urandom(16 * 1024**2)

    payload = store.blobs.put(data)

    assert (payload.chunks, store.blobs.get(payload)) == (48, data)


# ---- killed, and collected


class Killed(BaseException):
    """What ends a driver, wherever it is."""


class Dying(FileObjects):
    """Ends the driver when the object is there, and before the table says so."""

    def put(self, uri: str, data: bytes) -> None:
        super().put(uri, data)
        raise Killed


@on_both_tables
def test_object_of_a_driver_that_died_before_it_was_named_is_collected_after_its_age(world: World) -> None:
    store = world.store()
    dying = BookmarkStore(world.table, "test", clock=world.clock, state_uri=world.state_uri, objects=Dying())
    with pytest.raises(Killed):
        dying.blobs.put(large())
    (orphan,) = store.blobs.objects()
    assert items(store) == []

    world.collect(store, T0 + BLOB_GRACE - timedelta(minutes=1))
    assert (store.blobs.objects(), world.collected.objects) == ([orphan], ())

    world.collect(store)
    assert (store.blobs.objects(), world.collected.objects) == ([], (orphan,))


def test_dry_run_tells_of_orphans_and_leaves_them(world: World) -> None:
    store = world.store()
    dying = BookmarkStore(world.table, "test", clock=world.clock, state_uri=world.state_uri, objects=Dying())
    with pytest.raises(Killed):
        dying.blobs.put(large())
    world.clock.now = LATER

    told = collect(store, clock=world.clock, dry_run=True).as_dict()

    assert (told["objects"], len(store.blobs.objects())) == (1, 1)


@on_both_tables
def test_blob_that_nothing_refers_to_goes_with_its_object(world: World) -> None:
    store = world.store()
    payload = store.blobs.put(large())

    world.collect(store)

    assert world.collected.blobs == (payload.sha256,)
    assert (items(store), store.blobs.objects()) == ([], [])
    with pytest.raises(ConditionFailedError):
        store.table.transact([store.blobs.proof(large())])


def test_blob_is_collected_with_its_object_by_who_has_no_state_uri(world: World) -> None:
    world.store().blobs.put(large())

    world.collect(world.store(state_uri=None))

    assert world.store().blobs.objects() == []


@on_both_tables
def test_blob_that_is_put_again_while_it_is_collected_keeps_its_object(world: World) -> None:
    store = world.store()
    payload = store.blobs.put(large())
    (seen,) = collection.stored_blobs(store)
    world.clock.now = LATER
    store.blobs.put(large())

    assert not collection.remove_blob(store, seen)

    assert store.blobs.get(payload) == large()


@on_both_tables
def test_item_that_is_collected_while_it_is_stamped_anew_is_written_again(world: World) -> None:
    store = world.store()
    payload = store.blobs.put(large())
    (seen,) = collection.stored_blobs(store)

    class CollectedMeanwhile(FileObjects):
        def size(self, uri: str) -> int | None:
            found = super().size(uri)
            assert collection.remove_blob(store, seen)
            return found

    putting = BookmarkStore(
        world.table, "test", clock=world.clock, state_uri=world.state_uri, objects=CollectedMeanwhile()
    )
    putting.blobs.put(large())

    assert store.blobs.get(payload) == large()


@on_both_tables
def test_content_that_is_put_between_the_removal_of_item_and_object_is_not_lost(world: World) -> None:
    store = world.store()
    payload = store.blobs.put(large())

    class PutMeanwhile(FileObjects):
        def delete(self, uri: str) -> None:
            store.blobs.put(large())
            super().delete(uri)

    collecting = BookmarkStore(
        world.table, "test", clock=world.clock, state_uri=world.state_uri, objects=PutMeanwhile()
    )
    world.collect(collecting)

    assert world.collected.blobs == (payload.sha256,)
    assert store.blobs.get(payload) == large()


def test_objects_of_another_table_under_the_same_state_uri_are_left_alone(tmp_path: Path, state_uri: str) -> None:
    mine = World(SqliteTable(tmp_path / "mine.db"), state_uri)
    other = World(SqliteTable(tmp_path / "other.db"), state_uri)
    payload = other.store().blobs.put(large())
    mine.store().blobs.put(large())

    mine.collect(mine.store())

    assert mine.store().blobs.objects() == []
    assert other.store().blobs.get(payload) == large()


def test_copy_of_a_table_collects_its_items_and_leaves_the_objects_to_the_other(tmp_path: Path, state_uri: str) -> None:
    original = World(SqliteTable(tmp_path / "original.db"), state_uri)
    payload = original.store().blobs.put(large())
    (uri,) = original.store().blobs.objects()
    copied = SqliteTable(tmp_path / "copy.db", create=True)
    copied.create()
    for prefix in ("SCHEMA", "test#"):
        for key, _ in original.table.scan(prefix):
            copied.transact([Put(key, original.table.get([key])[key])])
    copy = World(copied, state_uri)

    assert copy.store().blobs.get(payload) == large()
    copy.collect(copy.store())

    assert (items(copy.store()), copy.collected.foreign_objects) == ([], (uri,))
    assert original.store().blobs.get(payload) == large()


# ---- where it is said


def test_store_uri_says_it(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/b.db?create=true&state_uri={tmp_path}/state"

    store = open_store(uri)

    assert store.blobs.state_uri == f"{tmp_path}/state"
    assert str(StoreAddress.parse(uri)) == uri


@pytest.mark.parametrize(
    ("state_uri", "said"),
    [
        ("state", "no folder that state can lie in"),
        ("s3://", "no folder that state can lie in"),
        ("gs://bucket/state", "scheme 'gs'.*in no other store"),
        ("hdfs://me:secret@name-node/state", "scheme 'hdfs'.*in no other store"),
        ("abfss://container@account.dfs.core.windows.net/state", "scheme 'abfss'.*in no other store"),
        ("/var/../etc", "no folder that state can lie in"),
        ("s3://bucket/*", "no folder that state can lie in"),
        ("s3://key:secret@bucket/state", "holds a user or password"),
    ],
)
def test_what_is_no_folder_is_refused_when_the_address_is_read(state_uri: str, said: str) -> None:
    with pytest.raises(OptionError, match=said) as raised:
        StoreAddress.parse(f"dynamodb://bookmarks?region=eu-west-1&state_uri={state_uri}")

    assert "secret" not in str(raised.value)


def test_folder_of_one_machine_is_refused_beside_a_table_of_several() -> None:
    with pytest.raises(OptionError, match="a folder of one machine"):
        StoreAddress.parse("dynamodb://bookmarks?region=eu-west-1&state_uri=/var/lib/state")

    local = "dynamodb://bookmarks?region=eu-west-1&endpoint=http://127.0.0.1:8000&state_uri=/var/lib/state"
    assert StoreAddress.parse(local).state_uri == "/var/lib/state"


def arguments(store: str | BookmarkStore, given: str | None, **settings: str) -> Arguments:
    return Arguments.of(
        Settings(**settings),
        name="job",
        store=store,
        option=None,
        from_run=None,
        to_run=None,
        run_id=None,
        attempt=None,
        replay=None,
        start=None,
        shard=None,
        on_conflict=None,
        wait_for=timedelta(hours=1),
        state_uri=given,
        manifest_uri=None,
        on_unused=None,
        on_partial="error",
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/b.db?create=true"


Say = Callable[[str, str], Arguments]
SAYINGS: Sequence[Say] = [
    lambda uri, where: arguments(uri, where),
    lambda uri, where: arguments(uri, None, state_uri=where),
    lambda uri, where: arguments(f"{uri}&state_uri={where}", None),
    lambda uri, where: arguments(f"{uri}&state_uri={where}", f"{where}", state_uri=where),
]


@pytest.mark.parametrize("say", SAYINGS, ids=["argument", "setting", "store", "all of them"])
def test_job_takes_it_from_the_script_the_settings_or_the_store(uri: str, tmp_path: Path, say: Say) -> None:
    assert say(uri, f"{tmp_path}/state").store.blobs.state_uri == f"{tmp_path}/state"


def test_two_that_differ_are_an_error(uri: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="Leave one of them out"):
        arguments(f"{uri}&state_uri=/a", "/b")
    with pytest.raises(OptionError, match="Leave one of them out"):
        arguments(uri, "/a", state_uri="/b")
    with pytest.raises(OptionError, match="beside an open store"):
        arguments(open_store(uri), "/b")


# ---- rights


ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/bookmarks"


@pytest.mark.parametrize(
    ("role", "actions"),
    [
        ("reader", ["s3:GetObject"]),
        ("job", ["s3:GetObject", "s3:PutObject"]),
        ("operator", ["s3:GetObject", "s3:PutObject"]),
        ("admin", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]),
    ],
)
def test_policy_bounds_objects_to_the_namespace_and_only_an_admin_deletes(role: str, actions: list[str]) -> None:
    plain, made = policy(role, ARN, "prod"), policy(role, ARN, "prod", "s3://state/bookmarks/")

    assert made["Statement"][: len(plain["Statement"])] == plain["Statement"]
    objects, listing = made["Statement"][len(plain["Statement"]) :]
    folders = ["bookmarks/prod/blobs/*", "bookmarks/prod/artifacts/*"]
    assert (objects["Action"], objects["Resource"]) == (actions, [f"arn:aws:s3:::state/{each}" for each in folders])
    assert listing["Condition"] == {"StringLike": {"s3:prefix": folders}}


@pytest.mark.parametrize("role", ["job", "job-that-rewinds-along", "operator", "admin"])
def test_policy_for_snapshots_adds_deletes_below_the_artifacts_and_nothing_else(role: str) -> None:
    plain = policy(role, ARN, "prod", "s3://state/bookmarks")["Statement"]
    *same, writes, missing = policy(role, ARN, "prod", "s3://state/bookmarks", snapshots=True)["Statement"]

    assert same == plain
    assert writes["Action"] == ["s3:DeleteObject", "s3:AbortMultipartUpload"]
    assert writes["Resource"] == "arn:aws:s3:::state/bookmarks/prod/artifacts/*"
    assert (missing["Action"], missing["Resource"]) == ("s3:ListBucket", "arn:aws:s3:::state")
    assert missing["Condition"] == {"Null": {"s3:prefix": "true"}}


def test_policy_for_snapshots_of_a_reader_or_without_a_place_is_refused() -> None:
    with pytest.raises(OptionError, match=r"a reader takes no snapshots.*Nothing was made"):
        policy("reader", ARN, "prod", "s3://state", snapshots=True)
    with pytest.raises(OptionError, match=r"lie under state_uri.*Nothing was made"):
        policy("job", ARN, "prod", snapshots=True)


def test_policy_of_a_whole_bucket_has_no_slash_in_front() -> None:
    *_, objects, _ = policy("job", ARN, "prod", "s3://state")["Statement"]

    assert objects["Resource"] == ["arn:aws:s3:::state/prod/blobs/*", "arn:aws:s3:::state/prod/artifacts/*"]
    with pytest.raises(OptionError, match="no folder in S3"):
        policy("job", ARN, "prod", "/var/lib/state")
