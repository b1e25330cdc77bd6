"""The store away in the middle of a step: the server stands still, and requests find no answer."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psutil
import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import STARTED, CommitPath, Gate
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import IS_FULL, Scene

OUTAGE_S = 20.0 if IS_FULL else 2.0
# In a short outage too a request has to be given up and sent again before there is an answer. None: as it is, 10 s.
READ_TIMEOUT_S = None if IS_FULL else OUTAGE_S / 10
LEASE_S = OUTAGE_S / 4  # runs out while the store is away

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.dynamodb_local,
    pytest.mark.parametrize("backend", ["dynamodb"]),
    pytest.mark.xdist_group("chaos-real"),
]


def server_at(url: str) -> psutil.Process:
    """Return the process of ours that serves at `url`."""
    port = str(urlsplit(url).port)
    return next(child for child in psutil.Process().children() if child.cmdline()[-2:] == ["-port", port])


@contextmanager
def away(url: str) -> Iterator[None]:
    """Let the server behind `url` stand still within the block."""
    server = server_at(url)
    server.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.send_signal(signal.SIGCONT)


@pytest.mark.seldom
@pytest.mark.parametrize("path", [CommitPath.APPEND, CommitPath.BY_ITSELF] if IS_FULL else [CommitPath.APPEND])
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(STARTED, id="begin"),
        pytest.param(Failpoint.TAKEN, id="recover"),
        pytest.param(Failpoint.LISTED, id="plan"),
        pytest.param(Failpoint.BEFORE_COMMIT, id="commit"),
        pytest.param(Failpoint.PUBLISHED, id="mark"),
    ],
)
def test_run_goes_on_when_the_store_is_back_and_nothing_is_done_twice(
    scene: Scene, gate: Gate, dynamodb_local_url: str, step: str, path: CommitPath
) -> None:
    scene.path = path
    scene.land_first()
    scene.run_first()
    scene.land_more()
    order = scene.order(holds=(step,), gate=gate.port, read_timeout_s=READ_TIMEOUT_S, lease_s=LEASE_S)
    with DriverProcess(order) as driver:
        held = gate.next(driver.pid)
        with away(dynamodb_local_url):
            held.go_on()
            time.sleep(OUTAGE_S)  # how long it is away is what is tested
        assert driver.wait() == 0, driver.said
    scene.check_whole()
    assert len(scene.runs()) == 2
