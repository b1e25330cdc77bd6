"""Pauses of a world: a run that reads what is new, or again what a window of runs read, and moves no bookmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from tests.chaos.sim.files import SimFile
from tests.chaos.sim.inputs import Inputs
from tests.chaos.sim.reading import Reading, faults
from tests.chaos.sim.record import Look
from tests.chaos.sim.scheduler import Process
from tests.chaos.sim.world import JobSpec, World

Part = tuple[str, tuple[str, ...]]


def pause(world: World, process: Process, spec: JobSpec) -> None:
    """Read what is new and write it, without moving the bookmark."""
    if spec.mode is not Mode.APPEND or not spec.outputs:
        return
    store = world.store(process)
    identity, choice = RunIdentity(f"dag/{process.name}", 1), Choice.of("pause", None, None)
    run = DetachedRun.begin(
        store, spec.name, identity, choice, world.environment(process), in_batches=spec.habit.in_batches
    )
    inputs = Inputs(world, process, spec, store, "fail")
    look: Look = process.notes["looks"][spec.name]
    known = {ctx: dict(entries) for ctx, entries in world.witness.jobs[spec.name].states[look.version].known.items()}
    while True:
        plans = _read_and_write(world, process, spec, run, inputs)
        world.witness.judged["pauses"] += 1
        for ctx, reading in plans.items():
            _judge(world, process, spec, ctx, reading, known.setdefault(ctx, {}), look)
        if not run.goes_on:
            return
        run = run.following()


def look_back(world: World, process: Process, spec: JobSpec) -> None:
    """Read again what a window of runs read: (after FROM, up to and including TO]."""
    random = world.random(process.name)
    committed = sorted(world.witness.jobs[spec.name].committed) or [1]
    low, high = sorted(random.choices([0, *committed], k=2))
    store = world.store(process)
    choice = Choice.of("pause", str(low), str(high))
    run = DetachedRun.begin(store, spec.name, RunIdentity(f"dag/{process.name}", 1), choice, world.environment(process))
    look: Look = process.notes["looks"][spec.name]
    inputs = Inputs(world, process, spec, store, "fail")
    for ctx, reading in _read_and_write(world, process, spec, run, inputs).items():
        _judge_window(world, spec, ctx, reading, (low, high), look)


def _read_and_write(
    world: World, process: Process, spec: JobSpec, run: DetachedRun, inputs: Inputs
) -> Mapping[str, Reading]:
    """Make one side run; return what it planned per context, as it was when it was planned."""
    readings: dict[str, Reading] = {}
    try:
        parts: list[Part] = []
        for ctx in spec.contexts:
            source = inputs.source(ctx)
            plan = run.plan(ctx, source, on_missing=spec.habit.on_missing)
            inputs.planned(ctx, source)
            readings[ctx] = _reading(world, process, spec, ctx, plan)
            parts += [(path, inputs.read(path)) for path in plan.files.paths]
        if spec.mode is Mode.APPEND:
            for output in spec.outputs:
                _stage(world, spec, run, output, parts)
        run.commit()
    except (BookmarkError, OSError) as error:
        run.abort(str(error))
        raise
    return readings


def _reading(world: World, process: Process, spec: JobSpec, ctx: str, plan: FilePlan) -> Reading:
    return Reading.of(plan, spec.habit, world.witness.seen_by(process, ctx, plan))


def _stage(world: World, spec: JobSpec, run: DetachedRun, output: str, parts: Sequence[Part]) -> None:
    target = spec.target(output)
    folder = run.place(output, StagingRequest("files", target, stats={"mode": spec.mode.value}))
    for index, (_, rows) in enumerate(parts):
        file = SimFile(rows, 10 * len(rows), world.now_ms)
        world.faulty_files.put(f"{folder}/p=0/part-{index}", file)
    staged = collect_staged(
        world.faulty_files, folder, target, run.file_token, spec.mode, rows=None, schema='{"fields":[]}'
    )
    run.staged(output, staged)


def _judge(
    world: World, process: Process, spec: JobSpec, ctx: str, reading: Reading, known: dict[str, str], look: Look
) -> None:
    """A pause reads what is new to the bookmark as it stood, and a later batch of it what those before have left."""
    state = world.witness.jobs[spec.name].states[look.version]
    for text in faults(reading, known, state.newest.get(ctx), world.files):
        world.witness.say(f"{process.name} {text}, context {ctx!r}")
    known |= reading.planned


def _judge_window(world: World, spec: JobSpec, ctx: str, reading: Reading, window: tuple[int, int], look: Look) -> None:
    """A window is what its living runs read, each file in the newest version of these; what is gone may be left out."""
    low, high = window
    world.witness.judged["windows"] += bool(reading.files)
    runs = sorted(int(number) for number in look.revisions if low < int(number) <= high)
    want: dict[str, str] = {}
    for number in runs:
        final = world.witness.jobs[spec.name].final[number]
        want |= final[ctx].files if ctx in final else {}
    gone = {path: version for path, version in want.items() if path not in reading.files}
    there = {path for path, version in gone.items() if _is_there(world, path, version)}
    is_left_out = bool(gone) and (bool(there) or spec.habit.on_missing == "error" or spec.upstream is not None)
    wrong = {path: version for path, version in reading.files.items() if want.get(path) != version}
    if wrong or is_left_out:
        world.witness.say(
            f"a pause of {spec.name} over ({low}, {high}] reads {sorted(reading.files.items())}, and runs {runs} read "
            f"{sorted(want.items())}, context {ctx!r}"
        )


def _is_there(world: World, path: str, version: str) -> bool:
    info = world.files.info(path)
    return info is not None and info.version == version
