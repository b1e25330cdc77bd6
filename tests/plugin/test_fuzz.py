"""Requests that nobody thought of, made from the app's own document: each answer is one that the document names.

Schemathesis makes them, good ones and bad ones, as an administrator; without anything random from run to run.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect, request
from airflow_bookmarks.lifecycle.changes.change import Change, rewind
from airflow_bookmarks.plugin.openapi import openapi_document
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import World
from tests.thorough import examples

from .conftest import Site, run_of_dag, three_runs

_PARAMETERS = pytest.importorskip("schemathesis.core.parameters", reason="this schemathesis makes no such requests yet")
ParameterLocation = _PARAMETERS.ParameterLocation

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("plugin")]

# How much is tried: of each route so many good requests, and as many bad ones.
_SETTINGS = settings(
    max_examples=examples(25, few=4),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
_DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
_ROUTES = [(verb, path) for path, verbs in json.loads(_DOCUMENT.read_text())["paths"].items() for verb in verbs]

load_all_checks()
_CONFORMS = CHECKS.get_by_names(
    [
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    ]
)
_REFUSES_BAD = [*_CONFORMS, *CHECKS.get_by_names(["negative_data_rejection"])]

PLAIN, GUARDED, READER, HELD, DAMAGED = "flights.clean", "flights.guarded", "nights.report", "held", "damaged"
JOBS = (PLAIN, GUARDED, READER, HELD, DAMAGED)


@dataclass(frozen=True)
class Known:
    """What is in the store, so that requests hit it."""

    world: World
    request: str

    def state(self) -> str:
        """Return all that the store holds."""
        return json.dumps(sorted((str(key), str(item)) for key, item in self.world.store.table.scan("test")))


@pytest.fixture
def known(site: Site, world: World, dags: object) -> Known:
    """Fill the store: jobs with a past, a change, a reader, a holder, a request, a side run and damage."""
    store, ada = world.store, Identity("ada", True, "airflow")
    three_runs(world)
    rewind(store, PLAIN, "2", reason="asked for", who="ada")
    run_of_dag(world, "flights", GUARDED)
    protect(store, GUARDED, reason="asked for", who=ada)
    version = store.head(GUARDED).version
    uma = Identity("uma", True, "airflow")
    asked = request(store, GUARDED, Change("reset"), reason="asked for", who=uma, expected_version=version)
    world.shop.run(READER, upstream=PLAIN)
    world.shop.side_lines("pause", "0", "1", job=PLAIN)
    world.shop.run(HELD)
    world.shop.begin(HELD, run_id="manual/held")
    run_of_dag(world, "flights", DAMAGED)
    store.table.transact([Update(store.keys(DAMAGED).head, set={"fence": "no number"})])
    return Known(world, asked.id)


@cache
def _document() -> dict[str, Any]:
    return openapi_document()


def _schema(site: Site) -> Any:
    schema: Any = schemathesis.openapi.from_dict(_document())
    schema.app = site.server
    return schema


def _there(known: Known) -> st.SearchStrategy[dict[str, Any]]:
    """Draw the path of something that there is; half of the time, of nothing."""
    names = {"job": JOBS, "number": (1, 2, 3), "id": (known.request,), "dag_id": ("flights", "nights")}
    paths = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in names.items()})
    return st.one_of(paths, st.just({}))


def _go_there(case: Any, there: dict[str, Any]) -> None:
    """Let a request be about something that there is, unless it would be a good one then, and is meant to be a bad one.

    A login that is wrong makes none bad here: in its place comes a real one. Where something else is meant to be wrong
    too, that alone is judged.
    """
    wrong = {where for where, part in case.meta.components.items() if part.mode.is_negative}
    if wrong - {ParameterLocation.HEADER}:
        case.meta.components.pop(ParameterLocation.HEADER, None)
        done = case.meta.phase.data
        done.mutations = tuple(one for one in done.mutations if one.parameter_location is not ParameterLocation.HEADER)
    is_bad = case.meta.generation.mode.is_negative
    if ParameterLocation.PATH not in wrong and (
        not is_bad or wrong & {ParameterLocation.QUERY, ParameterLocation.BODY}
    ):
        case.path_parameters = {name: there.get(name, value) for name, value in case.path_parameters.items()}


def _mean_it(case: Any, known: Known) -> None:
    """Let half of the changes that are well-formed be meant: with the version of now, and the name once more."""
    body, job = case.body, case.path_parameters.get("job")
    if not isinstance(body, dict) or "confirm" not in body or job not in JOBS or job == DAMAGED:
        return
    head = known.world.store.snapshot(job).head
    if head is not None and isinstance(body.get("expected_version"), int) and body["expected_version"] % 2 == 0:
        case.body = {**body, "confirm": job, "expected_version": head.version}


def _ask(site: Site, known: Known, verb: str, path: str, mode: GenerationMode) -> Counter[int]:
    """Make requests of a route, and look at each answer; return how often each status came."""
    statuses: Counter[int] = Counter()
    operation = _schema(site)[path][verb.upper()]
    headers = {"Authorization": f"Bearer {site.tokens['ada']}"}
    checks = _CONFORMS if mode is GenerationMode.POSITIVE else _REFUSES_BAD

    @_SETTINGS
    @given(case=operation.as_strategy(generation_mode=mode), there=_there(known))
    def ask(case: Any, there: dict[str, Any]) -> None:
        _go_there(case, there)
        # Airflow itself knows no path with a line break: such a request does not come to the app.
        assume("%0A" not in case.formatted_path)
        if mode is GenerationMode.POSITIVE:
            _mean_it(case, known)
        response = case.call(headers=headers)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=checks)
        if response.status_code >= 500:
            # Only what can't be read may answer so; nothing of ours fails of what is sent.
            assert case.path_parameters.get("job") == DAMAGED, response.text
            assert response.json()["error"] == "StateCorruptError"

    ask()
    return statuses


@pytest.fixture(params=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["good", "bad"])
def mode(request: pytest.FixtureRequest) -> GenerationMode:
    """Try good requests, and bad ones."""
    tried: GenerationMode = request.param
    is_older = not hasattr(_PARAMETERS, "EncodedPath") or find_spec("hypothesis_jsonschema") is not None
    if tried is GenerationMode.NEGATIVE and is_older:
        pytest.skip("this schemathesis makes other bad requests than these tests judge")
    return tried


@pytest.mark.parametrize(("verb", "path"), [each for each in _ROUTES if each[0] == "get"])
def test_looking_answers_as_documented_and_changes_nothing(
    site: Site, known: Known, verb: str, path: str, mode: GenerationMode
) -> None:
    before = known.state()

    statuses = _ask(site, known, verb, path, mode)

    assert known.state() == before
    if mode is GenerationMode.POSITIVE:
        assert statuses[200], statuses  # else all of it met nothing but refusals


@pytest.mark.parametrize(("verb", "path"), [each for each in _ROUTES if each[0] != "get"])
def test_change_answers_as_documented(site: Site, known: Known, verb: str, path: str, mode: GenerationMode) -> None:
    before = known.state()

    _ask(site, known, verb, path, mode)

    if mode is GenerationMode.NEGATIVE or path.endswith("/preview"):
        assert known.state() == before
