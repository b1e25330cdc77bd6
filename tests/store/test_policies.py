"""The shipped IAM policies, held against the requests that each verb really makes.

Each verb acts once on moto, and what IAM would see of its requests is recorded; then each policy is evaluated for it,
under both readings of `dynamodb:Attributes`. No verb of the command line is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.cli.command import VERBS, _parser
from airflow_bookmarks.cli.verb import VerbContext
from airflow_bookmarks.core.errors import NameInvalidError, OptionError, PartlyLandedError, StoreAccessError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.health.record import IndexFacts, health_shard, record_of
from airflow_bookmarks.core.health.verdict import HealthState, HealthVerdict
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes import approval as protection
from airflow_bookmarks.lifecycle.changes.change import relocate, reset, rewind
from airflow_bookmarks.lifecycle.changes.sharing import hand_over, share
from airflow_bookmarks.lifecycle.maintenance.doctor import examine, repair
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint, FaultHook, no_fault
from airflow_bookmarks.lifecycle.protocol.finish import finish
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.policies import ROLES, policy
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Mode, StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store import blobs as blob
from airflow_bookmarks.store import bookmark_store
from airflow_bookmarks.store.backends.dynamodb import EXPIRES_AT, DynamoTable
from airflow_bookmarks.store.blobs import OBJECT_BYTES
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Delete, Key
from airflow_bookmarks.store.table_settings import TableSettings
from airflow_bookmarks.store.transitions.health import health_shards, put_health_shard
from tests.conftest import REGION
from tests.lifecycle.rows import RowTables
from tests.lifecycle.shop import FILES, Shop
from tests.store.iam import Call, Gate, allows

pytestmark = pytest.mark.xdist_group("policies")  # each verb acts once, in one process

NAMESPACE = "prod"
TABLE_ARN = f"arn:aws:dynamodb:{REGION}:111122223333:table/bookmarks"
WHY: dict[str, Any] = {"reason": "a test", "who": "me"}
ADA, BOB = Identity("ada", True, "aws"), Identity("bob", True, "aws")


# What runs write in items of jobs. Whatever else an item has, only changes by people write.
_OF_RUNS = """
abandoned_by attempt base_run base_version changes cleaning commits committed_at contexts dag_id dag_run_id
data_run_number edges epoch error failed_at failure fence fences finished first_run first_seen_at from
is_empty is_last killed_at killed_attempt last_commit_at last_run lease_attempt lease_nonce lease_run_id
lease_since lease_until logical_date made_at map_index metrics option outputs pk planned_at positions published
published_at publishing replayed_at replayed_by replaying revision run run_id run_number runtime_version schemas series
owner sk staging state taken_at taken_nonce task_id to updated_at version version_before
"""
OF_RUNS = frozenset(_OF_RUNS.split())
BY_NAME_OF_RUNS = ("output:", "plan:", "position:", "replaced:", "schema:")  # one for each output or context
# Of requests and of decisions on them, as `lifecycle.changes.approval` and `store.transitions.approval` write them.
_OF_PEOPLE = """
change decided_at decided_by decided_by_kind decision done kind preview protected request valid_until void who
who_kind why
"""
OF_PEOPLE = _OF_PEOPLE.split()
# What an event says besides, and the line that it began: when, what was asked for, what was there before.
_OF_EVENTS = """
at clean ctx dag data_run_number_before dropped epoch_after epoch_before forced import_of imported_from moved name
owner_after owner_before run_number_before to_run value watermarks_after watermarks_before
"""
OF_EVENTS = _OF_EVENTS.split()


# ---- the world in which verbs act


@dataclass
class World:
    """Two jobs with history behind a gate: `copy` reads raw files, `report` reads what `copy` publishes."""

    shop: Shop
    gate: Gate
    session: boto3.session.Session
    url: str
    folder: Path

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
    for pk in ("prod#JOBS", "prod#HEALTH", *(f"prod#JOB#{job}" for job in ("copy", "report", "fresh", "other"))):
        for key, _ in list(table.query(pk)):
            table.transact([Delete(key)])
    store = BookmarkStore(table, NAMESPACE)
    store.init()
    shop = Shop(folder, store, environment=_environment())
    shop.put("a.txt", "1")
    shop.run("copy", "copy/1")
    shop.run("report", upstream="copy")
    shop.put("b.txt", "2")
    shop.run("copy", "copy/2")
    return World(shop, gate, session, url, folder)


Verb = Callable[[World], object]
Prepare = Callable[[World], object]


def cli(line: str, who: Identity = ADA) -> Verb:
    """Return what the command line does when `who` types that; DOCUMENT and REQUEST stand for what was prepared."""

    def act(world: World) -> None:
        words = line.replace("DOCUMENT", str(world.folder / "document.json"))
        if "REQUEST" in words:
            (asked,) = protection.requests(world.store, "copy")
            words = words.replace("REQUEST", asked.id)
        given = _parser().parse_args(words.split())
        assert not given.verb.run(VerbContext(world.store, lambda: who), given)

    return act


def nothing(world: World) -> None:
    """Prepare nothing."""


def a_new_file(world: World) -> None:
    world.shop.put("c.txt", "3")


def a_dead_driver(world: World) -> None:
    """Leave an open run whose lease is held."""
    a_new_file(world)
    world.shop.copy(world.shop.begin("copy", "copy/dead"))


def a_half_landed_run(world: World) -> None:
    """Leave an open run that is in one table of two, and somebody who was told of it."""
    be_told(world, a_dead_driver_between_tables(world))


def an_expired_lease_over_it(world: World) -> None:
    """Leave the same under the lease of one more driver, which has died as well."""
    a_half_landed_run(world)
    identity, seen = RunIdentity("copy/dead", 3), world.shop.store.snapshot("copy", "copy/dead")
    world.shop.store.take("copy", identity, seen, timedelta(0))


def a_dead_driver_between_tables(world: World) -> RowTables:
    a_new_file(world)
    tables = RowTables(world.folder)
    dead = world.shop.begin("copy", "copy/dead", sinks=SINKS.extended(tables))
    dead.plan("raw", FileSource(FILES, [str(world.shop.raw)]))
    dead.place_landings({name: StagingRequest(RowTables.kind, f"row-tables://{name}") for name in ("day", "region")})
    tables.table("day").write(int(dead.token.rsplit("/", 1)[1]), ["a"])
    return tables


def be_told(world: World, tables: RowTables) -> None:
    with pytest.raises(PartlyLandedError):
        world.shop.begin("copy", "copy/dead", attempt=2, sinks=SINKS.extended(tables))


def a_failed_first_run(world: World) -> None:
    world.shop.begin("other").abort("the test says so")


def a_rewound_upstream(world: World) -> None:
    world.shop.run("report", upstream="copy")
    rewind(world.store, "copy", 1, **WHY)


def a_committed_run(world: World) -> None:
    """Leave a run that is committed and not published."""
    a_new_file(world)
    world.shop.environment = _environment(_stop_before_publishing)
    run = world.shop.begin("copy", "copy/dead")
    world.shop.copy(run)
    with pytest.raises(InterruptedError):
        run.commit()
    world.shop.environment = _environment()


def _environment(at: FaultHook = no_fault) -> RunEnvironment:
    """Return a machine that renews no lease by itself: that would be recorded whenever a slow machine comes to it."""
    return RunEnvironment(at=at, start_thread=lambda renew: None)


def _stop_before_publishing(point: Failpoint) -> None:
    if point is Failpoint.PUBLISHING:
        raise InterruptedError("the driver was stopped")


def run_by_dag(world: World, job: str, dag_id: str = "nights") -> None:
    run = ActiveRun.begin(
        world.store, job, RunIdentity(f"{dag_id}/1", dag_id=dag_id, task_id="run"), world.shop.environment
    )
    world.shop.copy(run)
    run.commit()


def of_a_dag(world: World) -> None:
    hand_over(world.store, "copy", "nights", **WHY)


def shared(world: World) -> None:
    of_a_dag(world)
    share(world.store, "copy", "other", **WHY)


def a_reset(world: World) -> None:
    reset(world.store, "copy", **WHY)


def a_reset_with_clean(world: World) -> None:
    reset(world.store, "copy", clean=True, **WHY)


def relocate_raw(world: World) -> None:
    moved = world.shop.root / "moved"
    shutil.copytree(world.shop.raw, moved)
    relocate(world.store, "copy", "raw", str(world.shop.raw), str(moved), **WHY)


def fail(world: World) -> None:
    run = world.shop.begin("copy")
    world.shop.copy(run)
    run.abort("the test says so")


def overwrite(world: World) -> None:
    world.shop.mode = Mode.OVERWRITE
    world.shop.run("copy")


def overwrite_aside(world: World) -> None:
    world.shop.side_lines("disable")


def take_over(world: World) -> None:
    world.shop.run("copy", "copy/dead", attempt=2)


def finish_the_dead(world: World) -> None:
    finish(world.store, "copy", world.shop.identity("copy/dead"), world.shop.environment)


def replay(world: World) -> None:
    shop = world.shop
    run = ReplayRun.begin_replay(shop.store, "copy", shop.identity("copy/2", 2), shop.environment, 2)
    shop.copy(run)
    run.commit()


def collect_old_runs(world: World) -> None:
    collected = collect(world.store, clock=lambda: utc_now() + timedelta(days=100))
    assert any(one.runs for one in collected.jobs)


def renew(world: World) -> None:
    run = world.shop.begin("copy")
    world.store.renew(run._grant, world.shop.environment.lease_time)
    run.abort("the test says so")


def repair_a_dead_lease(world: World) -> None:
    def clock() -> datetime:
        return utc_now() + timedelta(days=2)

    done = repair(world.store, examine(world.store, clock=clock), who="me", clock=clock)
    assert [one.finding.code for one in done if one.is_done] == ["lease-dangling"]


def put_a_blob_twice(world: World) -> None:
    for _ in range(2):
        world.store.blobs.put(b"a plan")


def put_an_object_twice(world: World) -> None:
    store = BookmarkStore(world.store.table, NAMESPACE, state_uri=str(world.folder / "state"))
    for _ in range(2):
        store.blobs.put(bytes(OBJECT_BYTES + 1))


def of_large_state(act: Verb) -> Verb:
    """Return a verb whose lists and positions are too large for the items that refer to them."""

    def large(world: World) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for module in (blob, bookmark_store):
                patch.setattr(module, "INLINE_BYTES", 0)
            patch.setattr(blob.BlobStore.refer, "__defaults__", (0,))
            patch.setattr(blob.BlobStore.payload, "__defaults__", (0,))
            act(world)

    return large


def init(world: World) -> None:
    table = world.open_table()
    BookmarkStore(table, NAMESPACE).init()
    table.close()


def init_twice_with_tags(world: World) -> None:
    table = world.open_table()
    for _ in range(2):
        BookmarkStore(table, NAMESPACE).init(TableSettings(tags={"team": "data"}))
    table.close()


def a_document_of_a_new_job(world: World) -> None:
    world.shop.run("fresh")
    cli("export fresh --file DOCUMENT")(world)
    for key in [world.store.keys("fresh").index, *(key for key, _ in world.store.table.query("prod#JOB#fresh"))]:
        world.store.table.transact([Delete(key)])


protect = cli("protect copy --reason test")


def record_health(world: World) -> None:
    head, now = world.store.head("copy"), world.store.now()
    records = {
        "copy": record_of(head, IndexFacts(run_number=head.run_number), HealthVerdict(HealthState.OK, "well"), now)
    }
    shard = health_shard("copy")
    assert put_health_shard(world.store, shard, health_shards(world.store)[shard], records) is not None


def asked_for(line: str) -> Prepare:
    """Return what protects the job, and leaves a request of one person for a change."""

    def prepare(world: World) -> None:
        protect(world)
        cli(f"{line} --reason test")(world)

    return prepare


# ---- verbs by who may do them: the command line's begin with the name that they have there

READING: dict[str, tuple[Prepare, Verb]] = {
    "check": (nothing, cli("check")),
    "list": (nothing, cli("list")),
    "show": (nothing, cli("show copy")),
    "history": (nothing, cli("history copy --all")),
    "files": (nothing, cli("files copy --run 1")),
    "diff": (nothing, cli("diff copy 1 2")),
    "pending": (a_new_file, cli("pending copy")),
    "lag": (nothing, cli("lag")),
    "graph": (nothing, cli("graph")),
    "requests": (asked_for("reset copy --request"), cli("requests copy --all")),
    "export": (nothing, cli("export")),
    "export --glue": (nothing, cli("export --glue")),
    "replay": (nothing, cli("replay copy --run 2")),
    "reset --dry-run": (nothing, cli("reset copy --clean --dry-run --reason test")),
    "delete --dry-run": (nothing, cli("delete copy --dry-run --reason test")),
    "doctor": (a_reset, lambda w: examine(w.store)),
}
RUNNING: dict[str, tuple[Prepare, Verb]] = {
    "run": (a_new_file, lambda w: w.shop.run("copy")),
    "first run of a DAG": (nothing, lambda w: run_by_dag(w, "fresh")),
    "run of a DAG after one by hand": (nothing, lambda w: run_by_dag(w, "copy")),
    "run of a DAG that shares": (shared, lambda w: run_by_dag(w, "copy", "other")),
    "first run of a job": (nothing, lambda w: w.shop.run("fresh")),
    "empty run": (nothing, lambda w: w.shop.run("copy")),
    "run that overwrites": (a_new_file, overwrite),
    "run that reads an upstream": (nothing, lambda w: w.shop.run("report", upstream="copy")),
    "run that fails": (a_new_file, fail),
    "run after a dead driver": (a_dead_driver, take_over),
    "run behind one that is in one table of two": (
        lambda w: None,
        lambda w: be_told(w, a_dead_driver_between_tables(w)),
    ),
    "run that publishes what is due": (a_committed_run, take_over),
    "renewal of the lease": (nothing, renew),
    "finish": (a_committed_run, finish_the_dead),
    "run of a replay": (nothing, replay),
    "kill": (a_dead_driver, lambda w: w.store.fence("copy", "copy/dead", 1)),
    "run that cleans": (a_reset_with_clean, lambda w: w.shop.run("copy")),
    "pause": (a_new_file, lambda w: w.shop.side_lines("pause")),
    "pause with a window": (nothing, lambda w: w.shop.side_lines("pause", "copy/1", "copy/2")),
    "disable": (nothing, lambda w: w.shop.side_lines("disable")),
    "disable that replaces what was published": (overwrite, overwrite_aside),
    "run of large state": (a_new_file, of_large_state(lambda w: w.shop.run("copy"))),
    "blob that is there already": (nothing, put_a_blob_twice),
    "object that is there already": (nothing, put_an_object_twice),
}
ALONG: dict[str, tuple[Prepare, Verb]] = {
    "rewind along": (a_rewound_upstream, lambda w: w.shop.run("report", upstream="copy", on_rewind="rewind")),
}
STARTING_A_LINE: dict[str, tuple[Prepare, Verb]] = {
    "reset": (nothing, cli("reset copy --yes --reason test")),
    "reset --ctx": (nothing, cli("reset copy --ctx raw --yes --reason test")),
    "reset of a consumer": (nothing, cli("reset report --yes --reason test")),
    "reset --clean of large state": (nothing, of_large_state(cli("reset copy --clean --yes --reason test"))),
    "reset --clean": (nothing, cli("reset copy --clean --yes --reason test")),
    "reset --force": (a_dead_driver, cli("reset copy --force --yes --reason test")),
    "rewind": (nothing, cli("rewind copy --to 1 --yes --reason test")),
    "backfill": (nothing, cli("backfill copy --to 1 --yes --reason test")),
    "set": (nothing, cli("set copy raw now --yes --reason test")),
    "set-state": (nothing, cli("set-state copy cursor 1 --yes --reason test")),
    "rename-context": (nothing, cli("rename-context copy raw other --yes --reason test")),
    "relocate": (nothing, relocate_raw),
    "undo": (a_reset, cli("undo copy --yes --reason test")),
}
CHANGING: dict[str, tuple[Prepare, Verb]] = STARTING_A_LINE | {
    "unlock": (a_dead_driver, cli("unlock copy --reason test")),
    "settle": (a_half_landed_run, cli("settle copy --run 3 --as committed --yes --reason test")),
    "settle under an expired lease": (
        an_expired_lease_over_it,
        cli("settle copy --run 3 --as committed --yes --reason test"),
    ),
    "protect": (nothing, protect),
    "unprotect": (protect, cli("unprotect copy --reason test")),
    "reset --request": (protect, cli("reset copy --request --reason test")),
    "approve": (asked_for("reset copy --request"), cli("approve copy REQUEST --yes", BOB)),
    "approve of an unprotect": (asked_for("unprotect copy"), cli("approve copy REQUEST --yes", BOB)),
    "reject": (asked_for("reset copy --request"), cli("reject copy REQUEST --reason test", BOB)),
    "rename": (nothing, cli("rename copy other --yes --reason test")),
    "adopt": (nothing, cli("adopt other --from copy --reason test")),
    "adopt by a job that has begun": (a_failed_first_run, cli("adopt other --from copy --reason test")),
    "share": (of_a_dag, cli("share copy --with other --yes --reason test")),
    "unshare": (shared, cli("unshare copy --with other --reason test")),
    "hand-over": (nothing, cli("hand-over copy --to other --yes --reason test")),
    "approve of a hand-over": (
        asked_for("hand-over copy --to other --request"),
        cli("approve copy REQUEST --yes", BOB),
    ),
    "doctor --repair": (a_dead_driver, repair_a_dead_lease),
}
OWNING: dict[str, tuple[Prepare, Verb]] = {
    "init": (nothing, init),
    "init with tags": (nothing, init_twice_with_tags),
    "delete": (nothing, cli("delete report --name report --reason test")),
    "approve of a delete": (
        asked_for("delete copy --name copy --request"),
        cli("approve copy REQUEST --yes", BOB),
    ),
    "import": (a_document_of_a_new_job, cli("import DOCUMENT --reason test")),
    "import --overwrite": (cli("export copy --file DOCUMENT"), cli("import DOCUMENT --overwrite --reason test")),
    "gc": (nothing, collect_old_runs),
    "gc --dry-run": (nothing, cli("gc --dry-run")),
}

# What the page does with records of health, besides verbs: those who run jobs have no business there.
LISTING: dict[str, tuple[Prepare, Verb]] = {
    "records of health that are read": (record_health, lambda w: health_shards(w.store)),
}
RECORDING: dict[str, tuple[Prepare, Verb]] = {
    "records of health that are written": (nothing, record_health),
    "records of health that are written anew": (record_health, record_health),
}

ALLOWED = {
    "reader": READING | LISTING,
    "job": READING | RUNNING,
    "job-that-rewinds-along": READING | RUNNING | ALONG,
    "operator": READING | LISTING | RECORDING | RUNNING | ALONG | CHANGING,
    "admin": READING | LISTING | RECORDING | RUNNING | ALONG | CHANGING | OWNING,
}
ALL = READING | LISTING | RECORDING | RUNNING | ALONG | CHANGING | OWNING
# Whether IAM counts the attributes that a condition names, its documentation leaves open: both have to do.
WRITTEN_AND_COMPARED = (False, True)
# A line is what a run that rewinds along writes itself, and IAM can't tell it from that of a reset.
NOT_TO_BE_TOLD_APART = {"job-that-rewinds-along": STARTING_A_LINE}


def test_no_verb_of_the_command_line_is_left_out() -> None:
    groups = [READING, LISTING, RECORDING, RUNNING, ALONG, CHANGING, OWNING]
    assert sum(map(len, groups)) == len(ALL)  # none is in two
    assert {name.split()[0] for name in READING | CHANGING | OWNING} == {verb.name for verb in VERBS}


def _marks_of(verb: str) -> list[pytest.MarkDecorator]:
    """Let `make test` ask of the policies what runs ask; the matrix and `make test-all` ask what people do, too."""
    return [] if verb in RUNNING | ALONG else [pytest.mark.seldom]


@pytest.fixture(scope="module", params=[pytest.param(verb, marks=_marks_of(verb)) for verb in ALL])
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


def goes_without(verb: str, call: Call) -> bool:
    """Whether a verb says so and goes on where a request is refused; the policies of runs have no room for these."""
    return verb == "check" and call.action in ("DescribeTable", "ListTagsOfResource")


@pytest.mark.parametrize("role", ROLES)
def test_policy_lets_its_role_do_its_work_and_refuses_the_rest_before_anything_is_changed(
    recorded: tuple[str, list[list[Call]]], role: str
) -> None:
    for with_compared in WRITTEN_AND_COMPARED:
        check_policy(*recorded, role, with_compared=with_compared)


def check_policy(verb: str, requests: list[list[Call]], role: str, *, with_compared: bool) -> None:
    """Check what the policy of a role says to the requests of a verb."""
    given = policy(role, TABLE_ARN, NAMESPACE)
    refused = [
        at
        for at, calls in enumerate(requests)
        if not all(allows(given, call, with_compared=with_compared) or goes_without(verb, call) for call in calls)
    ]
    if verb in ALLOWED[role]:
        assert not refused, requests[refused[0]]
    elif verb not in NOT_TO_BE_TOLD_APART.get(role, ()):
        assert refused, f"the policy of a {role} lets {verb} through"
        # A run that may not rewind along has begun by then, fails, and gives the job back.
        before = [] if verb in ALONG else requests[: refused[0]]
        assert not [call for calls in before for call in calls if call.changes_a_job]


def is_of_runs(name: str) -> bool:
    return name in OF_RUNS or name.startswith(BY_NAME_OF_RUNS)


def test_each_item_of_a_change_by_people_is_refused_to_runs(recorded: tuple[str, list[list[Call]]]) -> None:
    verb, requests = recorded
    given = policy("job", TABLE_ARN, NAMESPACE)
    calls = [call for each in requests for call in each if call.changes_a_job]
    of_people = [call for call in calls if not all(map(is_of_runs, call.written))]
    assert not of_people or verb not in RUNNING, of_people[0]
    for with_compared in WRITTEN_AND_COMPARED:
        assert not [call for call in of_people if allows(given, call, with_compared=with_compared)]


@pytest.mark.parametrize("role", ["job", "job-that-rewinds-along"])
@pytest.mark.parametrize("key", ["prod#JOB#copy", "prod#JOBS"])
@pytest.mark.parametrize("action", ["PutItem", "DeleteItem"])
def test_policy_of_runs_lets_no_item_of_a_job_be_replaced_or_deleted(role: str, key: str, action: str) -> None:
    call = Call(action, frozenset({key}), frozenset({"pk", "sk", *item.head_attributes(Head())}))
    assert not allows(policy(role, TABLE_ARN, NAMESPACE), call, with_compared=False)
    wide = {"Effect": "Allow", "Action": [f"dynamodb:{action}"], "Resource": TABLE_ARN}  # of another policy of the role
    both = {"Statement": [*policy(role, TABLE_ARN, NAMESPACE)["Statement"], wide]}
    assert not allows(both, call, with_compared=False)


@pytest.mark.parametrize("role", ["job", "job-that-rewinds-along", "reader"])
@pytest.mark.parametrize("action", ["PutItem", "UpdateItem", "DeleteItem"])
def test_who_runs_jobs_or_only_looks_writes_no_record_of_health(role: str, action: str) -> None:
    call = Call(action, frozenset({"prod#HEALTH"}), frozenset({"pk", "sk", "revision", "jobs"}))
    assert not allows(policy(role, TABLE_ARN, NAMESPACE), call, with_compared=False)


@pytest.mark.parametrize("name", OF_PEOPLE)
def test_policy_of_a_job_lets_no_attribute_of_requests_and_decisions_be_written(name: str) -> None:
    call = Call("UpdateItem", frozenset({"prod#JOB#copy"}), frozenset({"pk", "sk", name}))
    assert not allows(policy("job", TABLE_ARN, NAMESPACE), call, with_compared=False)


@pytest.mark.parametrize("role", ["job", "job-that-rewinds-along", "operator"])
@pytest.mark.parametrize("key", ["prod#JOB#copy", "prod#JOBS", "prod#BLOB#00"])
@pytest.mark.parametrize("action", ["PutItem", "UpdateItem"])
def test_who_may_not_delete_may_not_let_an_item_expire_either(role: str, key: str, action: str) -> None:
    call = Call(action, frozenset({key}), frozenset({"pk", "sk", EXPIRES_AT}))
    wide = {"Effect": "Allow", "Action": [f"dynamodb:{action}"], "Resource": TABLE_ARN}  # of another policy of the role
    both = {"Statement": [*policy(role, TABLE_ARN, NAMESPACE)["Statement"], wide]}
    assert not allows(both, call, with_compared=False)


@pytest.mark.parametrize("name", OF_EVENTS)
def test_policy_of_a_job_lets_nothing_be_rewritten_that_events_of_people_say(name: str) -> None:
    call = Call("UpdateItem", frozenset({"prod#JOB#copy"}), frozenset({"pk", "sk", name}))
    assert not allows(policy("job", TABLE_ARN, NAMESPACE), call, with_compared=False)


def test_policy_of_one_namespace_opens_no_other(recorded: tuple[str, list[list[Call]]]) -> None:
    _, requests = recorded
    own = [call for calls in requests for call in calls if any(key.startswith("prod#") for key in call.keys)]
    for role in ROLES:
        given = policy(role, TABLE_ARN, "test")
        assert not [call for call in own if allows(given, call, with_compared=True)], role


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


def test_check_with_the_policy_of_a_job_says_what_it_may_not_see_and_goes_on(
    gated: tuple[Gate, boto3.session.Session, DynamoTable],
    moto_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = new_world(gated, moto_url, tmp_path)
    world.gate.policy = policy("job", TABLE_ARN, NAMESPACE)
    cli("check")(world)
    assert "DescribeTable" in capsys.readouterr().out


@pytest.mark.parametrize("role", ["reader", "operator", "admin"])
@pytest.mark.parametrize("action", ["DescribeTable", "ListTagsOfResource"])
def test_policy_of_people_lets_the_settings_of_the_table_be_seen(role: str, action: str) -> None:
    assert allows(policy(role, TABLE_ARN, NAMESPACE), Call(action, frozenset(), frozenset()), with_compared=True)


# ---- the templates


def test_job_that_rewinds_along_is_a_job_without_one_refusal() -> None:
    job, along = (policy(role, TABLE_ARN)["Statement"] for role in ("job", "job-that-rewinds-along"))
    assert [one for one in job if one not in along] == [one for one in job if one["Sid"] == "NeverStartALine"]
    assert [one for one in along if one not in job] == []


@pytest.mark.parametrize("role", ROLES)
def test_policy_is_for_the_table_that_was_named_whatever_its_name(role: str) -> None:
    arn = TABLE_ARN + "_NAMESPACE"
    statements = policy(role, arn, "TABLE_ARN")["Statement"]
    assert {statement["Resource"] for statement in statements} == {arn}
    assert statements[0]["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"][0] == "TABLE_ARN#JOB#*"


@pytest.mark.parametrize("role", ROLES)
def test_policy_has_no_placeholder_left_and_fits_a_role(role: str) -> None:
    text = json.dumps(policy(role, TABLE_ARN, NAMESPACE), separators=(",", ":"))
    assert not re.findall("TABLE_ARN|NAMESPACE", text)
    assert len(text) < 2048  # what IAM takes in line for a user, its least


@pytest.mark.parametrize("role", ROLES)
def test_policy_for_a_table_with_a_key_uses_it_by_way_of_dynamodb_alone(role: str) -> None:
    key = f"arn:aws:kms:{REGION}:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
    base, made = (policy(role, TABLE_ARN, NAMESPACE, kms_key=each)["Statement"] for each in (None, key))
    assert made[:-1] == base
    assert (made[-1]["Effect"], made[-1]["Resource"]) == ("Allow", key)
    assert made[-1]["Condition"] == {"StringEquals": {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"}}
    assert ("kms:CreateGrant" in made[-1]["Action"]) == (role == "admin")
    assert ("kms:Encrypt" in made[-1]["Action"]) == (role != "reader")
    with pytest.raises(OptionError, match="is no ARN of a KMS key"):
        policy(role, TABLE_ARN, NAMESPACE, kms_key="alias/state")


def test_policy_of_an_unknown_role_or_for_no_table_is_refused() -> None:
    with pytest.raises(OptionError, match="no policy for 'owner'"):
        policy("owner", TABLE_ARN)
    with pytest.raises(OptionError, match="no ARN of a DynamoDB table"):
        policy("job", "bookmarks")
    with pytest.raises(NameInvalidError):
        policy("job", TABLE_ARN, "*")
