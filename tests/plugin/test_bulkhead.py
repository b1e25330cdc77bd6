"""A store that hangs or fails costs the page an answer, and the API server nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
from boto3.session import Session

from airflow_bookmarks.core.errors import (
    StateCorruptError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
    TableMissingError,
)
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.plugin.bulkhead import Bulkhead
from airflow_bookmarks.plugin.connection import Opened, PageHook
from airflow_bookmarks.plugin.dependencies import Backstage
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.airflow.conftest import World, connect
from tests.lifecycle.shop import Shop

from .conftest import API, Site, meant, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]


class HangingTable:
    """A table whose reads end when they are let go; it counts those that are at it."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.let_go = threading.Event()
        self.at_it = threading.Semaphore(0)
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def get(self, keys: Any) -> Any:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.at_it.release()
        self.let_go.wait()
        with self._lock:
            self.now -= 1
        return self._table.get(keys)


class HangingHook(BookmarkHook):
    """A hook whose table hangs."""

    def open_store(self) -> BookmarkStore:
        store = super().open_store()
        return BookmarkStore(HangingTable(store.table), store.namespace)


@pytest.fixture
def hanging(site: Site, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingTable]:
    """Let the store of the page hang, and its people be impatient."""
    three_runs(world)
    hook = HangingHook()
    table = hook.get_conn().table
    assert isinstance(table, HangingTable)
    opened, gate = Opened(lambda: hook), Bulkhead("state store", threads=2, queue=2)
    backstage = Backstage(opened, gate, patience_s=0.3)
    monkeypatch.setattr(site.app.state, "backstage", backstage)
    yield table
    table.let_go.set()
    backstage.close()


@asynccontextmanager
async def browser(site: Site, user: str = "ada") -> Any:
    transport = httpx.ASGITransport(site.server)
    headers = {"Authorization": f"Bearer {site.tokens[user]}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://airflow.example", headers=headers) as client:
        yield client


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene()

    asyncio.run(main())


def test_store_that_hangs_is_given_up_and_everything_else_answers(
    site: Site, hanging: HangingTable, dags: object
) -> None:
    async def scene() -> None:
        async with browser(site) as client:
            stuck = asyncio.create_task(client.get(f"{API}/jobs/flights.clean"))
            await asyncio.to_thread(hanging.at_it.acquire)
            # Only now is the store at it; the others answer while it hangs.
            for path in (f"{API}/me", "/api/v2/version", "/api/v2/dags"):
                assert (path, (await client.get(path)).status_code) == (path, 200)
            assert not stuck.done() or (await stuck).status_code == 503
            answer = await stuck
            assert (answer.status_code, answer.json()["error"]) == (503, "NotInTimeError")
            assert "the state store did not answer within" in answer.json()["message"]
            assert answer.headers["Retry-After"]

    play(scene)


def test_store_that_hangs_takes_no_more_threads_than_there_are(site: Site, hanging: HangingTable, dags: object) -> None:
    async def scene() -> None:
        async with browser(site) as client:
            for _ in range(3):
                answers = await asyncio.gather(*(client.get(f"{API}/jobs/flights.clean") for _ in range(6)))
                assert {answer.status_code for answer in answers} == {503}
            # Two threads, two who wait for them, and the rest is told at once.
            assert hanging.most == 2
            assert any("requests wait for the state store already" in answer.text for answer in answers)
            hanging.let_go.set()
            assert (await until_it_answers(client)).status_code == 200

    play(scene)


def test_state_of_all_jobs_has_a_thread_of_its_own_and_more_time(
    site: Site, hanging: HangingTable, dags: object
) -> None:
    async def scene() -> None:
        async with browser(site) as client:
            asked = [client.get(f"{API}/jobs", params={"state": "IDLE"}) for _ in range(3)]
            answers = await asyncio.gather(*asked)
            assert {answer.status_code for answer in answers} == {503}
            told = re.search(r"the state of all jobs did not answer within ([\d.]+) s", answers[0].text)
            assert told is not None
            assert float(told[1]) > 0.3  # four times as much as others have, less what it took to get there
            assert hanging.most == 1

    play(scene)


async def until_it_answers(client: httpx.AsyncClient) -> httpx.Response:
    while True:
        answer = await client.get(f"{API}/jobs/flights.clean")
        if answer.status_code != 503:
            return answer


def test_change_that_took_too_long_is_noted_all_the_same(
    site: Site, hanging: HangingTable, world: World, dags: object
) -> None:
    from airflow_bookmarks.plugin.auth import Person
    from airflow_bookmarks.plugin.dependencies import Owned, run_here
    from airflow_bookmarks.plugin.routes import change as changing
    from airflow_bookmarks.plugin.schemas import requests

    class Uma:
        def get_name(self) -> str:
            return "uma"

    asked = requests.Reset(**meant(world, "flights.clean", "reset"))
    found, person = Owned("flights.clean", "flights", "clean"), Person(Uma())  # type: ignore[arg-type]
    backstage: Backstage = site.app.state.backstage
    done = threading.Event()

    def change() -> None:
        told = changing._change(
            backstage.opened.hook(), partial(run_here, backstage.opened.hook()), found, asked, person
        )
        assert told.audited
        done.set()

    async def scene() -> None:
        with pytest.raises(StoreUnavailableError, match="If it was a change, look whether it was made"):
            await backstage.store.run(change, 0.1)

    play(scene)
    assert world.store.head("flights.clean").epoch == 1
    hanging.let_go.set()
    assert done.wait(30)
    assert world.store.head("flights.clean").epoch == 2


def test_error_of_the_call_itself_is_not_taken_for_the_end_of_patience() -> None:
    gate = Bulkhead("state store")

    def call() -> None:
        raise TimeoutError("of a socket")

    async def scene() -> None:
        with pytest.raises(TimeoutError, match="of a socket"):
            await gate.run(call, 30)

    play(scene)
    gate.close()


def test_who_gives_up_waiting_leaves_the_queue() -> None:
    gate = Bulkhead("state store", threads=1, queue=1)
    let_go = threading.Event()

    async def scene() -> None:
        first = asyncio.create_task(gate.run(let_go.wait, 30))
        await asyncio.sleep(0)
        while gate._waiting:
            await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(StoreUnavailableError, match="Nothing was read or changed"):
                await gate.run(lambda: None, 0)
        let_go.set()
        assert await first
        assert await gate.run(lambda: "through", 30) == "through"

    play(scene)
    gate.close()


def test_gate_that_was_closed_opens_again() -> None:
    gate = Bulkhead("state store")
    gate.close()

    async def scene() -> None:
        assert await gate.run(lambda: 1, 30) == 1

    play(scene)
    gate.close()


# ---- a store that can't be reached, or a connection that is wrong


class FailingTable:
    """A table whose reads fail."""

    def __init__(self, table: Any, error: StoreError) -> None:
        self._table, self._error = table, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def get(self, keys: Any) -> Any:
        raise self._error

    def query(self, *_: Any, **__: Any) -> Any:
        raise self._error


class FailingHook(BookmarkHook):
    """A hook whose table fails."""

    error: StoreError

    def open_store(self) -> BookmarkStore:
        store = super().open_store()
        return BookmarkStore(FailingTable(store.table, self.error), store.namespace)


@pytest.mark.parametrize(
    ("error", "status", "to_viewers"),
    [
        (StoreThrottledError("the table secret-1 throttles"), 503, "StoreThrottledError"),
        (StoreUnavailableError("the table secret-1 is silent"), 503, "StoreUnavailableError"),
        (TableMissingError("there is no table secret-1"), 503, "TableMissingError"),
        (StateCorruptError("the item secret-1 is damaged"), 500, "StateCorruptError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failures_of_the_store_are_told_apart_also_to_viewers(
    site: Site,
    world: World,
    dags: object,
    monkeypatch: pytest.MonkeyPatch,
    error: StoreError,
    status: int,
    to_viewers: str,
) -> None:
    three_runs(world)
    hook = FailingHook()
    hook.error = error
    backstage = Backstage(Opened(lambda: hook))
    monkeypatch.setattr(site.app.state, "backstage", backstage)

    told = {user: site.as_user(user).get(f"{API}/jobs/flights.clean") for user in ("ada", "vera")}
    backstage.close()

    assert (told["ada"].status_code, told["ada"].json()["error"]) == (status, type(error).__name__)
    assert "secret-1" in told["ada"].text
    assert (told["vera"].status_code, told["vera"].json()["error"]) == (status, to_viewers)
    assert "secret-1" not in told["vera"].text


@pytest.mark.seldom
def test_endpoint_where_nobody_answers_is_a_503(site: Site, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    aws = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": "hunter-22", "extra": {"region_name": "eu-west-3"}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_MINE", json.dumps(aws))
    connect(monkeypatch, store="dynamodb://bookmarks?endpoint=http://127.0.0.1:9", aws_conn_id="aws_mine")

    for path in ("/jobs", "/jobs/copy"):
        answer = site.as_user("ada").get(f"{API}{path}")
        assert (answer.status_code, answer.json()["error"]) == (503, "StoreAccessError")
        assert "nothing at the endpoint of the table" in answer.json()["message"]
        assert "hunter" not in answer.text
        assert "AKIA" not in answer.text
    assert site.as_user("ada").get(f"{API}/me").status_code == 200


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ({"conn_type": "aws", "password": "hunter-22"}, "is of type 'aws'"),
        ({"conn_type": "bookmarks", "password": "hunter-22", "extra": {"store": "sqlite:////b.db"}}, "has a value in"),
        ({"conn_type": "bookmarks", "extra": {"store": "dynamodb://hunter-22:x@t"}}, "holds a user or password"),
        ({"conn_type": "bookmarks", "extra": {"store": "sqlite:////no/such.db"}}, "/no/such.db"),
        ({"conn_type": "bookmarks", "extra": {"store": "s3://t"}}, "scheme"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_connection_is_told_without_its_secrets(
    site: Site, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_BOOKMARKS_DEFAULT", json.dumps(connection))

    for path in ("/jobs", "/jobs/copy"):
        answer = site.as_user("ada").get(f"{API}{path}")
        assert (answer.status_code, said in answer.json()["message"]) == (503, True), answer.text
        assert "hunter" not in answer.text


def test_missing_connection_says_how_to_make_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_BOOKMARKS_DEFAULT")

    answer = site.as_user("ada").get(f"{API}/jobs")

    assert (answer.status_code, answer.json()["error"]) == (503, "StoreAccessError")
    assert "airflow connections add bookmarks_default" in answer.json()["message"]


def test_connection_that_was_mended_works_at_once(site: Site, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, store=f"sqlite:///{world.folder}/absent.db")
    assert site.as_user("ada").get(f"{API}/jobs").status_code == 503

    connect(monkeypatch, store=world.store_uri)

    assert site.as_user("ada").get(f"{API}/jobs").status_code == 200


def test_connection_is_the_configured_one_whatever_the_request_says(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.shop.run("copy")
    connect(monkeypatch, "other", store=f"sqlite:///{world.folder}/other.db?create=true")

    params = {"conn_id": "other", "bookmarks_conn_id": "other"}
    assert site.as_user("ada").get(f"{API}/jobs", params=params).json()["total"] == 1

    monkeypatch.setenv("AIRFLOW__BOOKMARKS__CONN_ID", "other")
    site.app.state.backstage.opened.forget()
    assert site.as_user("ada").get(f"{API}/jobs").json()["total"] == 0


def test_hook_is_opened_once_for_a_minute_and_again_after_an_error(world: World) -> None:
    made: list[BookmarkHook] = []
    clock = [0.0]

    def make() -> BookmarkHook:
        made.append(PageHook())
        return made[-1]

    opened = Opened(make, monotonic=lambda: clock[0])
    assert opened.hook() is opened.hook()
    clock[0] = 60.0
    assert opened.hook() is made[1]
    with pytest.raises(StoreUnavailableError), opened.watch():
        raise StoreUnavailableError("gone")
    assert opened.hook() is made[2]
    with pytest.raises(KeyError), opened.watch():
        raise KeyError
    assert opened.hook() is made[2]


def test_table_of_the_page_is_given_up_after_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, store="dynamodb://bookmarks?region=eu-west-1")

    table: Any = PageHook().get_conn().table

    config = table._client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 3)
    assert table._backoff.limit_s == 3.5


def test_no_answer_holds_a_secret(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch, moto_url: str
) -> None:
    extra = {"region_name": "eu-west-3", "aws_session_token": "hunter-33"}
    aws = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": "hunter-22", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_MINE", json.dumps(aws))
    uri = f"dynamodb://page-{os.getpid()}?endpoint={moto_url}&namespace=test"
    connect(monkeypatch, store=uri, aws_conn_id="aws_mine")
    store = BookmarkHook().open_store()
    store.init()
    there = replace(world, store=store, shop=Shop(world.folder, store))
    job = three_runs(there)
    client = site.as_user("uma")
    paths = ["me", "jobs", "dags/flights/jobs"]
    paths += [f"jobs/{job}{part}" for part in ("", "/runs", "/runs/1/files", "/events", "/pending", "/lag", "/graph")]

    told = [client.get(f"{API}/{path}") for path in paths]
    told += [client.post(f"{API}/jobs/{job}/preview", json={"kind": "reset"})]
    told += [client.post(f"{API}/jobs/{job}/changes", json=meant(there, job, "rewind", to_run=2))]
    store.table.close()

    assert {answer.status_code for answer in told} == {200}
    for secret in ("hunter", "AKIA", "moto", moto_url):
        assert not any(secret in answer.text for answer in told)


@pytest.mark.parametrize("has_aws_connection", [True, False])
def test_page_reads_large_state_that_lies_beside_the_table(
    site: Site,
    world: World,
    dags: object,
    monkeypatch: pytest.MonkeyPatch,
    moto_url: str,
    has_aws_connection: bool,
) -> None:
    """By the connection's state_uri, which `init` has not recorded in the table, and by its credentials."""
    name = f"beside-{uuid.uuid4().hex}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    Session(region_name="us-east-1").client("s3").create_bucket(Bucket=name)
    uri = f"dynamodb://{name}?endpoint={moto_url}&region=us-east-1&namespace=test"
    connection = {"store": uri, "state_uri": f"s3://{name}/state"}
    if has_aws_connection:
        aws = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": "one", "extra": {"region_name": "us-east-1"}}
        monkeypatch.setenv("AIRFLOW_CONN_AWS_MINE", json.dumps(aws))
        connection["aws_conn_id"] = "aws_mine"
    connect(monkeypatch, store=uri)
    BookmarkHook().open_store().init()
    connect(monkeypatch, **connection)
    store = BookmarkHook().open_store()
    monkeypatch.setattr("airflow_bookmarks.store.blobs.OBJECT_BYTES", 100)
    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.enabled.PLAN_INLINE_BYTES", 10)
    there = replace(world, store=store, shop=Shop(world.folder, store))
    job = three_runs(there)
    assert store.blobs.objects()

    answer = site.as_user("uma").get(f"{API}/jobs/{job}/runs/1/files")
    opened = PageHook().open_store()
    found = opened.blobs.objects()
    store.table.close()
    opened.table.close()

    assert answer.status_code == 200, answer.text
    assert "1.txt" in answer.text
    assert found == store.blobs.objects()
    assert opened.address == PageHook().address


def test_error_that_nobody_foresaw_shows_no_traceback(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.testclient import TestClient

    def broken(*_: object) -> None:
        raise ZeroDivisionError("hunter-22")

    monkeypatch.setattr(BookmarkStore, "jobs", broken)
    client = TestClient(site.server, raise_server_exceptions=False)

    answer = client.get(f"{API}/jobs", headers={"Authorization": f"Bearer {site.tokens['ada']}"})

    assert (answer.status_code, answer.json()["error"]) == (500, "InternalError")
    assert "hunter" not in answer.text
    assert "Traceback" not in answer.text
