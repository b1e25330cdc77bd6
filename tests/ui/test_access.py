"""Who may look and who may change, asked over the wire of a server as it is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.ui.conftest import Visitors
from tests.ui.server import Server
from tests.ui.world import World
from tools.patience import STUCK_S

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("page")]

JOB = "trials.refused"
# `tests/plugin/test_contract.py` and `test_access.py` hold it to be what the app has.
_DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
_SURE = {"reason": "asked for", "expected_version": 4, "confirm": JOB}
_SHARE = {"kind": "share", "dag": "flights"}
BODIES: dict[str, dict[str, Any]] = {
    "preview": {"kind": "reset"},
    "changes": {"kind": "reset", **_SURE},
    "protection": {"reason": "asked for"},
    "unlock": {"reason": "asked for", "held_by": "nobody/at/all", "confirm": JOB},
    "backfill/preview": {},
    "backfill": {"reason": "asked for", "expected_versions": {}, "confirm": JOB},
    "requests": {"kind": "undo", **_SURE},
    "requests/0/approve": {},
    "requests/0/reject": {"reason": "asked for"},
    "shards/preview": {"kind": "reset"},
    "shards/changes": {"kind": "reset", **_SURE},
    "ownership/preview": _SHARE,
    "ownership": {**_SHARE, **_SURE, "expected_owner": "trials", "expected_shared_with": []},
}


def routes() -> list[tuple[str, str]]:
    """Return method and address of each route."""
    paths: dict[str, dict[str, Any]] = json.loads(_DOCUMENT.read_text())["paths"]
    found = [
        (verb.upper(), path.format(job=JOB, number=1, id="0", dag_id="trials"))
        for path in paths
        for verb in paths[path]
    ]
    return sorted(found)


def ask(server: Server, method: str, path: str, token: str | None) -> int:
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body = json.dumps(BODIES[path.partition(f"{JOB}/")[2]]).encode() if method == "POST" else None
    asked = Request(f"{server.url}bookmarks{path}", body, headers, method=method)  # noqa: S310 - a URL of our own
    try:
        with urlopen(asked, timeout=STUCK_S) as answer:  # noqa: S310
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.mark.often
def test_every_route_answers_401_to_who_is_logged_out(server: Server) -> None:
    assert {(*route, ask(server, *route, None)) for route in routes()} == {(*route, 401) for route in routes()}


@pytest.mark.often
def test_every_route_that_changes_answers_403_to_a_viewer(server: Server, world: World) -> None:
    before = world.store.head(JOB)
    token = server.token("viewer")

    answers = {route: ask(server, *route, token) for route in routes() if route[0] == "POST"}

    assert len(answers) == len(BODIES)
    assert set(answers.values()) == {403}
    assert world.store.head(JOB) == before
    assert world.store.events(JOB) == []
    assert ask(server, "GET", f"/api/v1/jobs/{JOB}", token) == 200


@pytest.mark.often
def test_page_itself_is_served_to_a_browser_that_is_logged_out_as_airflows_own_is(visitors: Visitors) -> None:
    come = visitors(None)

    answer = come.page.request.get(f"{come.server.url}bookmarks/static/main.js")

    assert answer.status == 200
    # Which of the two it is depends on the machine's table of types.
    assert answer.headers["content-type"].partition(";")[0] in {"text/javascript", "application/javascript"}
