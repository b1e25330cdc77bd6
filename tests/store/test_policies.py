"""The shipped IAM policies, held against the requests that each verb really makes.

Each verb acts once on moto, and what IAM would see of its requests is recorded; then each policy is evaluated for it.
AWS does not say whether `dynamodb:Attributes` holds the names of what a request compares, or only of what it writes, so
both readings are tried.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3.session
import pytest
from botocore.exceptions import ClientError

from airflow_bookmarks.core.errors import NameInvalidError, OptionError, StoreAccessError
from airflow_bookmarks.core.instant import utc_now
from airflow_bookmarks.lifecycle.bookmark import bookmark, bookmarks
from airflow_bookmarks.lifecycle.change import reset, rewind, set_position, undo, unlock
from airflow_bookmarks.lifecycle.doctor import examine, repair
from airflow_bookmarks.lifecycle.finish import finish
from airflow_bookmarks.lifecycle.history import history
from airflow_bookmarks.lifecycle.lease import Machine
from airflow_bookmarks.lifecycle.place import Mode
from airflow_bookmarks.lifecycle.point import Point
from airflow_bookmarks.lifecycle.replay import ReplayRun
from airflow_bookmarks.lifecycle.retention import collect
from airflow_bookmarks.policies import ROLES, policy
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.dynamodb import DynamoTable
from airflow_bookmarks.store.table import Attributes, Delete, Key
from tests.conftest import REGION
from tests.lifecycle.shop import Shop

pytestmark = pytest.mark.xdist_group("policies")  # each verb acts once, in one process

NAMESPACE = "prod"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:111122223333:table/bookmarks"
WHY: dict[str, Any] = {"reason": "a test", "who": "me"}


# ---- IAM, as far as the policies use it


@dataclass(frozen=True)
class Call:
    """What IAM sees of one operation: action, partition keys, the attributes that it writes and those it compares."""

    action: str
    keys: frozenset[str]
    written: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()

    @property
    def changes_a_job(self) -> bool:
        """Whether it writes more than a blob, which means nothing until an item refers to it."""
        return bool(self.written) and not any("#BLOB#" in key for key in self.keys)


def calls_of(operation: str, request: Mapping[str, Any]) -> list[Call]:
    """Return what one request of the API is to IAM: a transaction is its operations, each under its own action."""
    match operation:
        case "BatchGetItem":
            ((_, wanted),) = request["RequestItems"].items()
            return [Call(operation, frozenset(key["pk"]["S"] for key in wanted["Keys"]))]
        case "Query":
            return [Call(operation, frozenset({request["ExpressionAttributeValues"][":pk"]["S"]}))]
        case "PutItem":
            return [_call(operation, request)]
        case "TransactWriteItems":
            actions = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
            actions["ConditionCheck"] = "ConditionCheckItem"
            return [_call(actions[kind], one) for item in request["TransactItems"] for kind, one in item.items()]
        case _:
            return [Call(operation, frozenset())]


def _call(action: str, request: Mapping[str, Any]) -> Call:
    names: Mapping[str, str] = request.get("ExpressionAttributeNames", {})
    item: Mapping[str, Any] = request.get("Item") or request["Key"]
    put = set(request.get("Item", {}))
    update = {names[mark] for mark in re.findall(r"#n\d+", request.get("UpdateExpression", ""))}
    compared = {names[mark] for mark in re.findall(r"#n\d+", request.get("ConditionExpression", ""))}
    return Call(action, frozenset({item["pk"]["S"]}), frozenset(put | update), frozenset(compared | {"pk", "sk"}))


def allows(given: Mapping[str, Any], call: Call, *, with_compared: bool) -> bool:
    """Say whether a policy allows a call: some statement does, and none denies it."""
    effects = [s["Effect"] for s in given["Statement"] if _applies(s, call, with_compared)]
    return "Allow" in effects and "Deny" not in effects


def _applies(statement: Mapping[str, Any], call: Call, with_compared: bool) -> bool:
    values = {
        "dynamodb:LeadingKeys": call.keys,
        "dynamodb:Attributes": call.written | call.compared if with_compared else call.written,
    }
    return f"dynamodb:{call.action}" in statement["Action"] and all(
        _holds(operator, values[name], patterns)
        for operator, tests in statement.get("Condition", {}).items()
        for name, patterns in tests.items()
    )


def _holds(operator: str, values: frozenset[str], patterns: Sequence[str]) -> bool:
    match operator:
        case "ForAllValues:StringLike":
            return all(any(_is_like(value, pattern) for pattern in patterns) for value in values)
        case "ForAnyValue:StringEquals":
            return bool(values & set(patterns))
    raise NotImplementedError(f"the evaluator does not know {operator}")


def _is_like(value: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), value, re.DOTALL) is not None


@dataclass
class Gate:
    """What every request goes through: it is kept in `passed`, and refused where `policy` does not allow it."""

    policy: Mapping[str, Any] | None = None
    passed: list[list[Call]] = field(default_factory=list)

    def __call__(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        calls = calls_of(model.name, params)
        refused = self.policy and not all(allows(self.policy, call, with_compared=True) for call in calls)
        if refused:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, model.name)
        self.passed.append(calls)


# ---- the world in which verbs act


@dataclass
class World:
    """Two jobs with history behind a gate: `copy` reads raw files, `report` reads what `copy` publishes."""

    shop: Shop
    gate: Gate
    session: boto3.session.Session
    url: str

    @property
    def store(self) -> BookmarkStore:
        return self.shop.store

    def open_table(self) -> DynamoTable:
        """Open another table, which is not there yet."""
        return DynamoTable(name=f"t-{uuid.uuid4().hex}", region=REGION, endpoint=self.url, session=self.session)

    def items(self) -> dict[Key, Attributes]:
        """Return all items of the two jobs."""
        return {key: item for job in ("copy", "report") for key, item in self.store.table.query(f"prod#JOB#{job}")}


@pytest.fixture(scope="module")
def gated(moto_url: str, aws_environment: None) -> Iterator[tuple[Gate, boto3.session.Session, DynamoTable]]:
    gate = Gate()
    session = boto3.session.Session()
    session.events.register("before-parameter-build.dynamodb", gate)
    table = DynamoTable(name=f"t-{uuid.uuid4().hex}", region=REGION, endpoint=moto_url, session=session)
    table.create()
    yield gate, session, table
    table.close()


def new_world(gated: tuple[Gate, boto3.session.Session, DynamoTable], url: str, folder: Path) -> World:
    gate, session, table = gated
    gate.policy = None
    for pk in ("prod#JOBS", *(f"prod#JOB#{job}" for job in ("copy", "report", "fresh"))):
        for key, _ in list(table.query(pk)):
            table.transact([Delete(key)])
    store = BookmarkStore(table, NAMESPACE)
    store.init()
    shop = Shop(folder, store)
    shop.put("a.txt", "1")
    shop.run("copy", "copy/1")
    shop.run("report", upstream="copy")
    shop.put("b.txt", "2")
    shop.run("copy", "copy/2")
    return World(shop, gate, session, url)


Verb = Callable[[World], object]
Prepare = Callable[[World], object]


def nothing(world: World) -> None:
    """Prepare nothing."""


def a_new_file(world: World) -> None:
    world.shop.put("c.txt", "3")


def a_dead_driver(world: World) -> None:
    """Leave an open run whose lease is held."""
    a_new_file(world)
    world.shop.copy(world.shop.begin("copy", "copy/dead"))


def a_rewound_upstream(world: World) -> None:
    world.shop.run("report", upstream="copy")
    rewind(world.store, "copy", 1, **WHY)


def a_committed_run(world: World) -> None:
    """Leave a run that is committed and not published."""
    a_new_file(world)
    world.shop.machine = Machine(at=_stop_before_publishing)
    run = world.shop.begin("copy", "copy/dead")
    world.shop.copy(run)
    with pytest.raises(InterruptedError):
        run.commit()
    world.shop.machine = Machine()


def _stop_before_publishing(point: Point) -> None:
    if point is Point.PUBLISHING:
        raise InterruptedError("the driver was stopped")


def a_reset(world: World) -> None:
    reset(world.store, "copy", **WHY)


def fail(world: World) -> None:
    run = world.shop.begin("copy")
    world.shop.copy(run)
    run.abort("the test says so")


def overwrite(world: World) -> None:
    world.shop.mode = Mode.OVERWRITE
    world.shop.run("copy")


def take_over(world: World) -> None:
    world.shop.run("copy", "copy/dead", attempt=2)


def finish_the_dead(world: World) -> None:
    finish(world.store, "copy", world.shop.caller("copy/dead"), world.shop.machine)


def replay(world: World) -> None:
    shop = world.shop
    run = ReplayRun.begin_replay(shop.store, "copy", shop.caller("copy/2", 2), shop.machine, 2)
    shop.copy(run)
    run.commit()


def collect_old_runs(world: World) -> None:
    collected = collect(world.store, clock=lambda: utc_now() + timedelta(days=100))
    assert any(one.runs for one in collected.jobs)


def renew(world: World) -> None:
    run = world.shop.begin("copy")
    world.store.renew(run._holding, world.shop.machine.lease_time)
    run.abort("the test says so")


def repair_a_dead_lease(world: World) -> None:
    def clock() -> datetime:
        return utc_now() + timedelta(days=2)

    done = repair(world.store, examine(world.store, clock=clock), who="me", clock=clock)
    assert [one.finding.code for one in done if one.is_done] == ["lease-dangling"]


def init(world: World) -> None:
    table = world.open_table()
    BookmarkStore(table, NAMESPACE).init()
    table.close()


def delete_a_run(world: World) -> None:
    world.store.table.transact([Delete(key) for key in world.items() if key.sk.startswith("RUN#")])


READING: dict[str, tuple[Prepare, Verb]] = {
    "check": (nothing, lambda w: w.store.check_layout()),
    "list": (nothing, lambda w: bookmarks(w.store)),
    "show": (nothing, lambda w: bookmark(w.store, "copy")),
    "history": (nothing, lambda w: history(w.store, "copy", limit=None, with_open=True)),
    "doctor": (a_reset, lambda w: examine(w.store)),
}
RUNNING: dict[str, tuple[Prepare, Verb]] = {
    "run": (a_new_file, lambda w: w.shop.run("copy")),
    "first run of a job": (nothing, lambda w: w.shop.run("fresh")),
    "empty run": (nothing, lambda w: w.shop.run("copy")),
    "run that overwrites": (a_new_file, overwrite),
    "run that reads an upstream": (nothing, lambda w: w.shop.run("report", upstream="copy")),
    "run that fails": (a_new_file, fail),
    "run after a dead driver": (a_dead_driver, take_over),
    "run that publishes what is due": (a_committed_run, take_over),
    "renewal of the lease": (nothing, renew),
    "finish": (a_committed_run, finish_the_dead),
    "replay": (nothing, replay),
    "kill": (a_dead_driver, lambda w: w.store.fence("copy", "copy/dead", 1)),
    "pause": (a_new_file, lambda w: w.shop.side_lines("pause")),
    "pause with a window": (nothing, lambda w: w.shop.side_lines("pause", "copy/1", "copy/2")),
    "disable": (nothing, lambda w: w.shop.side_lines("disable")),
}
ALONG: dict[str, tuple[Prepare, Verb]] = {
    "rewind along": (a_rewound_upstream, lambda w: w.shop.run("report", upstream="copy", on_rewind="rewind")),
}
CHANGING: dict[str, tuple[Prepare, Verb]] = {
    "reset": (nothing, lambda w: reset(w.store, "copy", **WHY)),
    "reset of a context": (nothing, lambda w: reset(w.store, "copy", contexts=["raw"], **WHY)),
    "reset of a consumer": (nothing, lambda w: reset(w.store, "report", **WHY)),
    "reset with clean": (nothing, lambda w: reset(w.store, "copy", clean=True, **WHY)),
    "forced reset": (a_dead_driver, lambda w: reset(w.store, "copy", force=True, **WHY)),
    "rewind": (nothing, lambda w: rewind(w.store, "copy", 1, **WHY)),
    "set": (nothing, lambda w: set_position(w.store, "copy", "raw", "now", **WHY)),
    "undo": (a_reset, lambda w: undo(w.store, "copy", **WHY)),
    "doctor that repairs": (a_dead_driver, repair_a_dead_lease),
    "unlock": (a_dead_driver, lambda w: unlock(w.store, "copy", **WHY)),
}
OWNING: dict[str, tuple[Prepare, Verb]] = {
    "init": (nothing, init),
    "delete": (nothing, delete_a_run),
    "gc": (nothing, collect_old_runs),
}

ALLOWED = {
    "reader": READING,
    "job": READING | RUNNING,
    "job-that-rewinds-along": READING | RUNNING | ALONG,
    "operator": READING | RUNNING | ALONG | CHANGING,
    "admin": READING | RUNNING | ALONG | CHANGING | OWNING,
}
ALL = READING | RUNNING | ALONG | CHANGING | OWNING
# A line is what a run that rewinds along writes itself, and IAM can't tell it from that of a reset.
NOT_TO_BE_TOLD_APART = {"job-that-rewinds-along": set(CHANGING) - {"unlock", "doctor that repairs"}}


@pytest.fixture(scope="module", params=ALL)
def recorded(
    request: pytest.FixtureRequest,
    gated: tuple[Gate, boto3.session.Session, DynamoTable],
    moto_url: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, list[list[Call]]]:
    """Let a verb act, and return its name and what IAM sees of each of its requests."""
    verb: str = request.param
    world = new_world(gated, moto_url, tmp_path_factory.mktemp("world"))
    prepare, act = ALL[verb]
    prepare(world)
    world.gate.passed = []
    act(world)
    return verb, world.gate.passed


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("with_compared", [False, True], ids=["written", "written-and-compared"])
def test_policy_lets_its_role_do_its_work_and_refuses_the_rest_before_anything_is_changed(
    recorded: tuple[str, list[list[Call]]], role: str, with_compared: bool
) -> None:
    verb, requests = recorded
    given = policy(role, TABLE_ARN, NAMESPACE)
    refused = [
        at
        for at, calls in enumerate(requests)
        if not all(allows(given, call, with_compared=with_compared) for call in calls)
    ]
    if verb in ALLOWED[role]:
        assert not refused, requests[refused[0]]
    elif verb not in NOT_TO_BE_TOLD_APART.get(role, ()):
        assert refused, f"the policy of a {role} lets {verb} through"
        # A run that may not rewind along has begun by then, fails, and gives the job back.
        before = [] if verb in ALONG else requests[: refused[0]]
        assert not [call for calls in before for call in calls if call.changes_a_job]


@pytest.mark.parametrize("role", ROLES)
def test_policy_of_one_namespace_opens_no_other(recorded: tuple[str, list[list[Call]]], role: str) -> None:
    _, requests = recorded
    given = policy(role, TABLE_ARN, "test")
    own = [call for calls in requests for call in calls if any(key.startswith("prod#") for key in call.keys)]
    assert not [call for call in own if allows(given, call, with_compared=True)]


# ---- a refusal as the package meets it


def test_reset_with_the_policy_of_a_job_says_what_was_refused_and_leaves_all_as_it_was(
    gated: tuple[Gate, boto3.session.Session, DynamoTable], moto_url: str, tmp_path: Path
) -> None:
    world = new_world(gated, moto_url, tmp_path)
    before = world.items()
    world.gate.policy = policy("job", TABLE_ARN, NAMESPACE)
    with pytest.raises(StoreAccessError, match=r"TransactWriteItems .* Nothing was written\. Allow the action"):
        reset(world.store, "copy", **WHY)
    assert world.items() == before
    a_new_file(world)
    assert world.shop.run("copy")[0] == ["3"]


# ---- the templates


def test_job_that_rewinds_along_is_a_job_without_one_refusal() -> None:
    job, along = (policy(role, TABLE_ARN)["Statement"] for role in ("job", "job-that-rewinds-along"))
    assert [one for one in job if one not in along] == [one for one in job if one["Sid"] == "NeverStartALine"]
    assert [one for one in along if one not in job] == []


@pytest.mark.parametrize("role", ROLES)
def test_policy_has_no_placeholder_left_and_fits_a_role(role: str) -> None:
    text = json.dumps(policy(role, TABLE_ARN, NAMESPACE), separators=(",", ":"))
    assert not re.findall("TABLE_ARN|NAMESPACE", text)
    assert len(text) < 2048  # what IAM takes in line for a user, its least


def test_policy_of_an_unknown_role_or_for_no_table_is_refused() -> None:
    with pytest.raises(OptionError, match="no policy for 'owner'"):
        policy("owner", TABLE_ARN)
    with pytest.raises(OptionError, match="no ARN of a DynamoDB table"):
        policy("job", "bookmarks")
    with pytest.raises(NameInvalidError):
        policy("job", TABLE_ARN, "*")
