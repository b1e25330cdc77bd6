"""A server below a path, whose store is a DynamoDB that hangs for a while."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from uuid import uuid4

import psutil
import pytest
from playwright.sync_api import Browser, expect

from airflow_bookmarks.lifecycle.changes.naming import delete
from tests.ui.conftest import Visitors
from tests.ui.server import Server, running_server
from tests.ui.world import World
from tools.patience import STUCK_S

pytestmark = [
    pytest.mark.thorough,  # a server of its own behind a proxy
    pytest.mark.airflow,
    pytest.mark.dynamodb_local,
    pytest.mark.slow,
    pytest.mark.xdist_group("page"),
]

PATH = "/tools/airflow"
_AT_ONCE = 50


@dataclass(frozen=True)
class Far:
    """The server, what its store holds, and the process of that store."""

    server: Server
    world: World
    store: psutil.Process

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let the store take requests and answer none, for the block."""
        self.store.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.store.send_signal(signal.SIGCONT)


@pytest.fixture(scope="module")
def far(browser: Browser, dynamodb_local_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    """Run a server below a path, with an empty table in DynamoDB Local."""
    folder = tmp_path_factory.mktemp("far")
    uri = f"dynamodb://far?region=eu-west-1&namespace=page&endpoint={dynamodb_local_url}"
    world = World.open(folder / "world", uri)
    port = str(urlsplit(dynamodb_local_url).port)
    (store,) = (child for child in psutil.Process(os.getpid()).children() if port in child.cmdline())
    with running_server(folder / "server", uri, base_path=PATH) as server:
        yield Far(server, world, store)


@pytest.fixture
def job(far: Far) -> Iterator[str]:
    """Make a job, and delete it after the test."""
    name = far.world.small(f"trials.{uuid4().hex}", runs=1)
    yield name
    delete(far.world.store, name, typed_name=name, reason="the test is over", who="nobody")


def test_store_without_a_job_says_how_one_comes_about(visitors: Visitors, far: Far) -> None:
    page = visitors(to=far.server).open()

    expect(page.get_by_text("No bookmarks yet")).to_be_visible()
    expect(page.get_by_text("BookmarkSparkSubmitOperator")).to_be_visible()


def test_page_works_below_a_path(visitors: Visitors, far: Far, job: str) -> None:
    come = visitors(to=far.server)
    page = come.open()
    assert urlsplit(page.url).path == f"{PATH}/plugin/bookmarks"

    page.get_by_role("link", name=job, exact=True).click()

    expect(page.get_by_role("heading", name=job)).to_be_visible()
    expect(page).to_have_url(re.compile(rf"{PATH}/plugin/bookmarks\?job={job}"))
    page.reload()
    expect(page.get_by_role("heading", name=job)).to_be_visible()


def test_links_to_dags_stay_below_the_path(visitors: Visitors, far: Far, job: str) -> None:
    page = visitors(to=far.server).open()

    page.get_by_role("link", name="trials", exact=True).click()

    expect(page).to_have_url(re.compile(rf"{PATH}/dags/trials"))


def test_store_that_hangs_is_said_in_words_while_airflow_answers_and_all_goes_on_after_it(
    visitors: Visitors, far: Far, job: str
) -> None:
    come = visitors(to=far.server)
    come.expected.add(503)
    page = come.open()
    expect(page.get_by_role("link", name=job, exact=True)).to_be_visible()
    token = far.server.token("admin")
    with ThreadPoolExecutor(_AT_ONCE) as people:
        with far.hanging():
            asked = [people.submit(get, far.server, "bookmarks/api/v1/jobs", token) for _ in range(_AT_ONCE)]
            version = get(far.server, "api/v2/version", token)
            waiting = sum(not each.done() for each in asked)
            answers = [each.result() for each in asked]
            page.goto(f"{far.server.url}plugin/bookmarks")
            expect(page.get_by_role("alert")).to_contain_text("The state store does not answer")

        assert (version[0], waiting > 0) == (200, True)
        assert {status for status, _ in answers} == {503}
        assert all("state store" in json.loads(body)["message"] for _, body in answers)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("link", name=job, exact=True)).to_be_visible(timeout=60_000)
        assert get(far.server, "bookmarks/api/v1/jobs", token)[0] == 200


def get(server: Server, path: str, token: str) -> tuple[int, str]:
    asked = Request(f"{server.url}{path}", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own
    try:
        with urlopen(asked, timeout=STUCK_S) as answer:  # noqa: S310
            return int(answer.status), answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
