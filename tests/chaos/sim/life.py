"""What goes on in a world: each role's name says what it does, and each draws the rest from its own randomness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, get_args

from airflow_bookmarks.core.errors import (
    BookmarkError,
    StoreUnavailableError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Settlement
from airflow_bookmarks.core.selection.listing import instant
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.changes import change
from airflow_bookmarks.lifecycle.changes.settle import find_partly_landed, settle
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.finish import finish
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Mode, Staged, StagingRequest, collect_staged
from airflow_bookmarks.sources.source import Source
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.sim.files import SimFile
from tests.chaos.sim.inputs import Inputs
from tests.chaos.sim.record import Intent
from tests.chaos.sim.scheduler import Fate, Process
from tests.chaos.sim.side import look_back, pause
from tests.chaos.sim.sink import KIND
from tests.chaos.sim.world import JobSpec, World

NAMES = ("a", "b", "c", "d")
UNANSWERED = {Fate.LOST, Fate.OUTAGE, Fate.LATE}


class Oops(Exception):
    """Stands for any exception in the user's block."""


# ---- drivers


def drive(
    world: World, process: Process, spec: JobSpec, identity: RunIdentity, *, replays: int | None = None,
    oops: bool = False, patience: timedelta | None = None, policy: Any = None,
) -> Summary:  # fmt: skip
    """Make one whole run, or all batches of a loop, as a driver does; raise what it raises."""
    store, environment = world.store(process), world.environment(process)
    process.notes |= {"phase": "begin", "run_id": identity.run_id}
    sinks = SINKS.extended(world.sinks[spec.name])
    conflict: dict[str, Any] = {} if patience is None else {"on_conflict": "wait", "wait_for": patience}
    run: ActiveRun | ReplayRun
    if replays is None:
        in_batches = spec.habit.in_batches
        run = ActiveRun.begin(store, spec.name, identity, environment, sinks=sinks, in_batches=in_batches, **conflict)
    else:
        run = ReplayRun.begin_replay(store, spec.name, identity, environment, replays, sinks=sinks, **conflict)
    inputs = Inputs(world, process, spec, store, policy or spec.policy)
    mistaken = 2 - identity.attempt % 2 if oops else 0
    summary = _batch(world, process, spec, run, inputs, mistaken == 1)
    while run.goes_on:
        run, mistaken = run.following(), mistaken - 1
        world.witness.judged["batches"] += 1
        summary = _batch(world, process, spec, run, inputs, mistaken == 1)
    process.notes["phase"] = "done"
    if spec.habit.in_batches and replays is None and any(over_bound(summary).values()):
        world.witness.say(f"{process.name} ends its loop with input over: {over_bound(summary)}")
    return summary


def _batch(
    world: World, process: Process, spec: JobSpec, run: ActiveRun | ReplayRun, inputs: Inputs, oops: bool
) -> Summary:
    process.notes["phase"] = "work"
    try:
        _copy(world, process, spec, run, inputs)
        if oops:
            raise Oops("a mistake in the block")
        process.notes["phase"] = "commit"
        return run.commit()
    except (BookmarkError, OSError, Oops) as error:
        run.abort(str(error))
        raise


def over_bound(summary: Summary) -> dict[str, int]:
    """Return per context how many files a bound has left to the next run."""
    return {ctx: figures["skipped"].get(OVER_BOUND, 0) for ctx, figures in summary.contexts.items()}


def _copy(world: World, process: Process, spec: JobSpec, run: ActiveRun | ReplayRun, inputs: Inputs) -> None:
    witness = world.witness
    rows: Counter[str] = Counter()
    parts: list[tuple[str, tuple[str, ...]]] = []
    sources: list[tuple[Source[Any], FilePlan]] = []
    for ctx in spec.contexts:
        source = inputs.source(ctx)
        plan = run.plan(ctx, source, on_missing=spec.habit.on_missing)
        inputs.planned(ctx, source)
        sources.append((source, plan))
        fence = _fence(run)
        number = run.run_number
        if isinstance(run, ReplayRun):
            witness.jobs[spec.name].readings.setdefault(fence, {})
        else:
            witness.planned(spec.name, number, fence, ctx, plan, process)
        for path in plan.files.paths:
            got = inputs.read(path)
            rows.update(got)
            if got:  # of a file that went nothing is written
                parts.append((path, got))
            if not isinstance(run, ReplayRun):
                witness.reads(spec.name, fence, ctx, got)
    for output in spec.outputs:
        _stage(world, spec, run, output, parts, rows)
    if spec.sinks:
        # What a sink has taken can't be taken back, so what was read is looked at again before.
        if any(source.recheck(plan).missing for source, plan in sources):
            raise OSError("a planned file changed before the sink took its rows")
        _hand_over(world, process, spec, run, rows)


def _fence(run: ActiveRun | ReplayRun) -> int:
    return int(run.token.rsplit("/", 1)[1])


def _stage(
    world: World, spec: JobSpec, run: ActiveRun | ReplayRun, output: str, parts: Sequence[tuple[str, Sequence[str]]],
    rows: Counter[str],
) -> None:  # fmt: skip
    target = spec.target(output)
    folder = run.place(output, StagingRequest("files", target, stats={"mode": spec.mode.value}))
    place = None if isinstance(run, ReplayRun) else folder
    world.witness.writes(spec.name, run.run_number, _fence(run), output, Counter(rows), place)
    for index, (path, got) in enumerate(parts):
        stem = path.rpartition("/")[2].partition(".")[0]
        partition = stem.rpartition("-")[2] if spec.mode is Mode.OVERWRITE_PARTITIONS else str(index % 2)
        file = SimFile(tuple(got), 10 * len(got), world.now_ms)
        world.faulty_files.put(f"{folder}/p={partition}/part-{index}-{stem}", file)
    staged = collect_staged(
        world.faulty_files, folder, target, run.file_token, spec.mode, rows=sum(rows.values()), schema='{"fields":[]}'
    )
    run.staged(output, staged)


def _hand_over(world: World, process: Process, spec: JobSpec, run: ActiveRun | ReplayRun, rows: Counter[str]) -> None:
    fence = _fence(run)
    requests = {output: StagingRequest(KIND, f"sim://{output}/{spec.name}") for output in spec.sinks}
    places = run.place_landings(requests) if len(requests) > 1 else {o: run.place(o, r) for o, r in requests.items()}
    is_silent = fence % 2 == 0  # Delta skips without a word what its transaction has passed; a database refuses
    for output, place in places.items():
        world.witness.writes(spec.name, run.run_number, fence, output, Counter(rows), place)
    for output in places:
        # Two tables part more often by what the second refuses than by a crash in between.
        if output != spec.sinks[0] and not process.is_exempt and world.random(f"{output} {fence}").random() < 0.3:
            raise OSError(f"{output} refuses a row")
        taken = not rows or world.sinks[spec.name].write(output, fence, sorted(rows.elements()))
        if not taken and not is_silent:
            raise OSError("the sink has seen a newer token")
        run.staged(output, Staged((), rows=sum(rows.values())))


def _driver(world: World, process: Process, spec: JobSpec, identity: RunIdentity, **how: Any) -> Callable[[], None]:
    def body() -> None:
        try:
            drive(world, process, spec, identity, **how)
        except (BookmarkError, OSError, Oops) as error:
            process.notes["error"] = error
            world.scheduler.note(f"{process.name}: {type(error).__name__}: {str(error)[:300]}")
            _judge_failure(world, process, spec, error)
        else:
            _judge_success(world, process, spec)

    return body


def _judge_failure(world: World, process: Process, spec: JobSpec, error: Exception) -> None:
    """A driver that committed never reports failure, unless it was fenced since or somebody did not answer."""
    witness = world.witness.jobs[spec.name]
    is_own = process.notes.get("phase") == "commit"
    committed = witness.commits_by.get(process.name, []) if is_own else []
    if not committed or UNANSWERED & set(process.faults):
        return
    head: Any = world.table.items(f"sim#JOB#{spec.name}")["HEAD"]
    last = committed[-1]
    if head["fence"] == last.fence and last.fence in witness.owners:
        world.witness.say(f"{process.name} committed {last} of {spec.name} and reports {type(error).__name__}: {error}")


def _judge_success(world: World, process: Process, spec: JobSpec) -> None:
    """Success means published."""
    witness = world.witness.jobs[spec.name]
    for key in witness.commits_by.get(process.name, []):
        if key.fence not in witness.marked and key.number not in witness.dropped:
            world.witness.say(f"{process.name} reports success and run {key} of {spec.name} is not published")


# ---- tasks: a worker that starts drivers, one attempt after the other


def task(world: World, process: Process, spec: JobSpec, name: str, first: int, replays: bool = False) -> None:
    """Start drivers until one succeeds; finish what a dead one committed."""
    random = world.random(process.name)
    run_id = f"dag/{name}"
    for attempt in range(first, first + random.choice([1, 2, 3])):
        identity = RunIdentity(run_id, attempt)
        driver = world.process(f"{process.name}.{attempt}", process.start)
        how: dict[str, Any] = {"oops": random.random() < 0.1}
        if random.random() < 0.6:
            how["patience"] = timedelta(seconds=random.choice([30, 600]))
        if replays:
            how["replays"] = _number(world, random, spec)
        world.spawn(driver, _driver(world, driver, spec, identity, **how))
        until = world.scheduler.steps + random.choice([30, 100, 4000, 4000])
        world.scheduler.await_(
            "waits for its driver",
            lambda d=driver, u=until: d.is_gone or world.scheduler.steps > u,  # type: ignore[misc]
        )
        try:
            if not driver.is_gone:
                if random.random() < 0.6:
                    world.store(process).fence(spec.name, run_id, attempt)
                continue
            _finish(world, process, spec, identity)
        except (BookmarkError, OSError) as error:
            world.scheduler.note(f"{process.name}: {type(error).__name__}: {str(error)[:200]}")
        else:
            return


def _number(world: World, random: Random, spec: JobSpec) -> int:
    committed = sorted(world.witness.jobs[spec.name].committed)
    return random.choice(committed) if committed else 1


def _finish(world: World, process: Process, spec: JobSpec, identity: RunIdentity) -> None:
    process.notes["finishes"] = True  # it publishes what a killed attempt committed, and plans nothing
    summary = finish(world.store(process), spec.name, identity, world.environment(process))
    witness = world.witness.jobs[spec.name]
    world.scheduler.note(f"{process.name}: finished with run {summary.run_number}")
    if identity.run_id not in witness.own_commits:
        world.witness.say(
            f"the worker of {identity.run_id} reports success and no driver of it committed a run of its own"
        )
    key = witness.committed.get(summary.run_number or 0)
    if key is None:
        world.witness.say(f"the worker of {identity.run_id} reports run {summary.run_number}, which never committed")
    elif key.fence not in witness.marked and key.number not in witness.dropped:
        world.witness.say(f"the worker of {identity.run_id} reports success and run {key} is not published")


# ---- others


def land(world: World, process: Process, count: int, *, eager: bool = False) -> None:
    """Add, overwrite, delete and back-date files, some with the same time."""
    random = world.random(process.name)
    for _ in range(count):
        ctx = random.choice(["raw", "raw", "ref"])
        name = f"{world.root(ctx)}/{ctx}-{random.choice(NAMES)}"
        if not eager and random.random() < 0.1:
            world.faulty_files.delete(name)
            continue
        _write(world, random, name)


def _write(world: World, random: Random, path: str) -> None:
    world.serial += 1
    name = path.rpartition("/")[2]
    rows = tuple(f"{name}@{world.serial}.{i}" for i in range(random.choice([1, 1, 2])))
    at = random.choice([world.now_ms, world.now_ms // 60_000 * 60_000, world.now_ms - 86_400_000])
    # Without an etag, size and time are all that tells one content from another.
    etag = f"e{world.serial}" if world.settings.has_etags else None
    size = 100 if etag is not None and random.random() < 0.5 else 100 + world.serial
    world.faulty_files.put(path, SimFile(rows, size, at, etag))


def spoil(world: World, process: Process, spec: JobSpec) -> None:
    """Overwrite or delete a file that a run has planned, while it is read."""
    random, witness = world.random(process.name), world.witness.jobs[spec.name]
    until = world.scheduler.steps + 300

    def planned() -> list[str]:
        open_fences = {key.fence for key, state in witness.run_states.items() if state == "PLANNED"}
        found = [r for fence in open_fences for r in witness.readings.get(fence, {}).values() if r.seen is not None]
        return sorted({path for reading in found for path in reading.files})

    for _ in range(random.choice([1, 2])):
        world.scheduler.await_("waits for a plan", lambda: bool(planned()) or world.scheduler.steps > until)
        paths = planned()
        if not paths:
            return
        name = random.choice(paths)
        if random.random() < 0.4:
            world.faulty_files.delete(name)
        else:
            _write(world, random, name)


def kill(world: World, process: Process, spec: JobSpec) -> None:
    """Kill attempts, as an operator does."""
    random = world.random(process.name)
    store = world.store(process)
    for _ in range(random.choice([1, 2])):
        store.fence(spec.name, f"dag/{spec.name} {random.choice('ab')}", random.choice([1, 1, 2]))


def decide(world: World, process: Process, spec: JobSpec) -> None:
    """Say what becomes of a run that has landed in one table only, whenever one waits for it."""
    store, until = world.store(process), world.scheduler.steps + 4000

    def asked() -> bool:
        facts = [value.get("facts", {}) for value in _outputs_of_open_runs(world, spec)]
        return any("has_landed" in fact and "settled_as" not in fact for fact in facts)

    for _ in range(world.random(process.name).choice([1, 2])):
        world.scheduler.await_("waits to be asked", lambda: asked() or world.scheduler.steps > until)
        try:
            settle_any(world, process, store, spec)
        except StoreUnavailableError:
            raise
        except (BookmarkError, OSError) as error:
            world.scheduler.note(f"{process.name}: {type(error).__name__}: {str(error)[:200]}")


def settle_any(world: World, process: Process, store: BookmarkStore, spec: JobSpec) -> None:
    """Settle the run of a job that waits for it, if there is one, as the seed has it."""
    found = find_partly_landed(store, spec.name)
    if found is not None:
        choice = world.random(f"{process.name} {found.number}").choice(get_args(Settlement))
        settle(store, spec.name, found.number, choice, reason="test", who=process.name)
        world.witness.judged[choice] += 1


def _outputs_of_open_runs(world: World, spec: JobSpec) -> list[Any]:
    states = world.witness.jobs[spec.name].run_states
    items: Any = world.table.items(f"sim#JOB#{spec.name}")
    opened = [
        f"RUN#{key.number:010d}#{key.fence:010d}" for key, state in states.items() if state in ("PLANNED", "FAILED")
    ]
    return [value for sk in opened for name, value in items.get(sk, {}).items() if name.startswith("output:")]


def administer(world: World, process: Process, spec: JobSpec) -> None:
    """Reset, rewind, set and undo, with force and without, with and without clean."""
    random = world.random(process.name)
    store = world.store(process)
    if world.settings.theme == "cleans" and random.random() < 0.6:
        _await_due(world, spec)
    for _ in range(random.choice([1, 1, 2, 3])):
        how: dict[str, Any] = {"reason": "test", "who": process.name, "force": random.random() < 0.7}
        try:
            if random.random() < 0.2:
                how["expected_version"] = store.head(spec.name).version
            _change(world, process, spec, store, random, how)
        except StoreUnavailableError:
            raise
        except (BookmarkError, OSError) as error:
            world.scheduler.note(f"{process.name}: {type(error).__name__}: {str(error)[:200]}")


def _await_due(world: World, spec: JobSpec) -> None:
    """Wait for a publish that is due, as chance would have it one time in many."""
    until = world.scheduler.steps + 300

    def is_due() -> bool:
        head = world.table.items(f"sim#JOB#{spec.name}").get("HEAD", {})
        return "publishing" in head or world.scheduler.steps > until

    world.scheduler.await_("waits for a publish that is due", is_due)


def _change(
    world: World, process: Process, spec: JobSpec, store: BookmarkStore, random: Random, how: dict[str, Any]
) -> None:
    kind = random.choice(["reset", "reset", "rewind", "rewind", "rewind", "set", "undo", "unlock"])
    clean = random.random() < (0.8 if world.settings.theme == "cleans" else 0.4)
    contexts = random.sample(spec.contexts, 1) if not clean and random.random() < 0.2 else None
    told = None if contexts is None else tuple(contexts)
    process.notes.pop("listed", None)
    if kind == "reset":
        process.notes["intent"] = Intent("reset", told, value="0", clean=clean)
        change.reset(store, spec.name, clean=clean, contexts=contexts, **how)
    elif kind == "rewind":
        number = _number(world, random, spec)
        process.notes["intent"] = Intent("rewind", told, value=str(number), clean=clean)
        change.rewind(store, spec.name, number, clean=clean, contexts=contexts, **how)
    elif kind == "undo":
        process.notes["intent"] = Intent("undo")
        change.undo(store, spec.name, **how)
    elif kind == "unlock":
        change.unlock(store, spec.name, reason="test", who=process.name)
    else:
        _set(world, process, spec, store, random, how)


def _set(
    world: World, process: Process, spec: JobSpec, store: BookmarkStore, random: Random, how: dict[str, Any]
) -> None:
    ctx = random.choice(spec.contexts)
    value, told = "now", "now"
    if random.random() < 0.5 and spec.upstream is None:
        at = world.now_ms - random.choice([0, 30_000, 86_400_000])
        value, told = to_text(instant(at)), str(at)
    elif random.random() < 0.5 and spec.upstream is not None:
        value = told = str(_number(world, random, world.jobs[spec.upstream]))
    process.notes["intent"] = Intent("set", ctx=ctx, value=told)
    change.set_position(store, spec.name, ctx, value, **how)


def gather(world: World, process: Process) -> None:
    """Collect garbage."""
    process.notes["collects"] = True
    random = world.random(process.name)
    store = world.store(process)
    collect(store, retention=timedelta(days=random.choice([7, 30, 150])), clock=world.scheduler.clock(process))


def cast(world: World, role: str) -> tuple[Process, Callable[[], None]]:
    """Return the process of a role, and what it does."""
    kind, *rest = role.split(" ")
    random = world.random(f"{role}/start")
    process = world.process(role, random.randrange(0, world.settings.spread))

    def body() -> None:
        match kind, rest:
            case "task", [job, name, first]:
                task(world, process, world.jobs[job], f"{job} {name}", int(first))
            case "replay", [job, _]:
                run_id, attempt = random.choice([(f"{job} a", 3), (f"{job} replay", 1)])
                task(world, process, world.jobs[job], run_id, attempt, replays=True)
            case "lander", _:
                land(world, process, world.random(role).choice([1, 2, 3, 5]))
            case "rival", [job]:
                spoil(world, process, world.jobs[job])
            case "kill", [job]:
                kill(world, process, world.jobs[job])
            case "admin", [job, _]:
                administer(world, process, world.jobs[job])
            case "decide", [job]:
                decide(world, process, world.jobs[job])
            case "pause", [job]:
                pause(world, process, world.jobs[job])
            case "window", [job, _]:
                look_back(world, process, world.jobs[job])
            case "collect", _:
                gather(world, process)

    def guarded() -> None:
        try:
            body()
        except (BookmarkError, OSError) as error:
            world.scheduler.note(f"{role}: {type(error).__name__}: {str(error)[:200]}")

    return process, guarded
