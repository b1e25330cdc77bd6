"""The end of a world: no more faults, fresh drivers alone, several times; then what must hold is looked at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow_bookmarks.core.errors import (
    BookmarkError,
    PartlyLandedError,
    RewindAlongRefusedError,
    RunUnknownError,
    UpstreamReplayedError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.selection.listing import FileInfo
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.table import Attributes, Value
from tests.chaos.sim.life import drive, over_bound, settle_any
from tests.chaos.sim.record import JobWitness
from tests.chaos.sim.witness import NAMESPACE
from tests.chaos.sim.world import LAKE, JobSpec, World

_PARTS = 40  # runs after which a bounded job has come to its end
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def run_alone(world: World, times: int = 2, *, is_first_alone: bool = False) -> None:
    """Let a fresh driver of each job run alone, upstream first."""
    for turn in range(times):
        for spec in world.settings.jobs[: 1 if is_first_alone else None]:
            _run_fresh(world, spec, turn)
            if world.witness.violations:
                return


def _run_fresh(world: World, spec: JobSpec, turn: int) -> None:
    world.scheduler.now += timedelta(days=1)
    for part in range(_PARTS):
        name = f"fresh {spec.name} {turn}" if part == 0 else f"fresh {spec.name} {turn}.{part}"
        if not _run_part(world, spec, f"{name} @{world.scheduler.steps}"):
            return
    world.witness.say(f"fresh drivers of {spec.name} leave something over its bound {_PARTS} times")


def _run_part(world: World, spec: JobSpec, name: str) -> bool:
    """Let one fresh driver run; say whether a bound has left something to another."""
    scheduler = world.scheduler
    process = world.process(name, is_exempt=True)
    errors: list[Exception] = []
    left: list[str] = []

    def body() -> None:
        try:
            summary = drive(world, process, spec, RunIdentity(f"fresh/{process.name}", 1))
            left.extend(ctx for ctx, count in over_bound(summary).items() if count)
        except (BookmarkError, OSError) as error:
            scheduler.note(f"{process.name}: {type(error).__name__}: {error}")
            errors.append(error)

    world.spawn(process, body)
    scheduler.run()
    for error in errors:
        if isinstance(error, UpstreamReplayedError | UpstreamRewoundError) and spec.policy == "fail":
            _check_told(world, spec)
            again = world.process(f"{process.name} along", is_exempt=True)
            world.spawn(again, lambda p=again: _go_along(world, p, spec))  # type: ignore[misc]
            scheduler.run()
        elif isinstance(error, PartlyLandedError):
            left.append(f"run {error.number}, which waited for a person")
            person = world.process(f"{process.name} decides", is_exempt=True)
            world.spawn(person, lambda p=person: settle_any(world, p, world.store(p), spec))  # type: ignore[misc]
            scheduler.run()
        elif isinstance(error, RunUnknownError) and _is_cut_off(world, spec):
            world.cut_off.add(spec.name)
        elif isinstance(error, RewindAlongRefusedError) and _may_be_refused(world, spec):
            again = world.process(f"{process.name} along", is_exempt=True)
            world.spawn(again, lambda p=again: _go_along(world, p, spec))  # type: ignore[misc]
            scheduler.run()
        elif not world.witness.violations:
            world.witness.say(f"a fresh driver of {spec.name} is stuck: {type(error).__name__}: {error}")
    return bool(left) and not world.witness.violations


def _is_cut_off(world: World, spec: JobSpec) -> bool:
    """Whether runs were collected that a consumer had not read, or would have to go back to along with its upstream."""
    upstream = spec.upstream
    if upstream is None:
        return False
    items = world.table.items(f"{NAMESPACE}#JOBS")
    if items.get(spec.name, {}).get("collected_until"):
        return True
    index: Any = items.get(upstream, {})
    known = world.witness.jobs[spec.name].state.known.values()
    top = max((int(number) for runs in known for number in runs), default=0)
    return bool(top < index.get("collected_until", 0)) or upstream in world.cut_off


def _may_be_refused(world: World, spec: JobSpec) -> bool:
    """Whether what a consumer published may be past taking back: others have read it, or it was collected."""
    return any(other.upstream == spec.name for other in world.settings.jobs) or _is_cut_off(world, spec)


def _go_along(world: World, process: Any, spec: JobSpec) -> None:
    try:
        drive(world, process, spec, RunIdentity(f"fresh/{process.name}", 1), policy="rewind_keep")
    except RunUnknownError as error:
        if not _is_cut_off(world, spec):
            world.witness.say(f"a fresh driver of {spec.name} can't go along: {error}")
        world.cut_off.add(spec.name)
    except (BookmarkError, OSError) as error:
        world.witness.say(f"a fresh driver of {spec.name} can't go along: {type(error).__name__}: {error}")


def _check_told(world: World, spec: JobSpec) -> None:
    """A consumer is told of a rewind or replay only where there was one."""
    upstream = world.witness.jobs[spec.upstream or ""]
    known = world.witness.jobs[spec.name].state.known
    for runs in known.values():
        for number, revision in runs.items():
            if int(number) not in upstream.state.living or upstream.revisions.get(int(number), 0) != int(revision):
                return
    if not any(runs for runs in known.values()):
        world.witness.say(f"{spec.name} is told that its upstream went back, and has consumed nothing of it")


# ---- what must hold


def check(world: World) -> None:
    """Look at everything that must hold when all is quiet."""
    for spec in world.settings.jobs:
        witness = world.witness.jobs[spec.name]
        _check_head(world, spec)
        _check_open(world, spec, witness)
        _check_consumed(world, spec, witness)
        for output in spec.outputs:
            _check_target(world, spec, witness, output)
        for output in spec.sinks:
            _check_sink(world, spec, witness, output)
        _check_staging(world, spec)
    _check_blobs(world)


def _items(world: World, job: str) -> Mapping[str, Attributes]:
    return world.table.items(f"{NAMESPACE}#JOB#{job}")


def _check_head(world: World, spec: JobSpec) -> None:
    head: Any = _items(world, spec.name)["HEAD"]
    for name in ("publishing", "cleaning", "lease_nonce"):
        if name in head:
            world.witness.say(f"HEAD of {spec.name} has {name} for ever: {head[name]}")


def _check_open(world: World, spec: JobSpec, witness: JobWitness) -> None:
    for key, state in witness.run_states.items():
        is_dropped = key.number in witness.dropped
        if state in ("PLANNED", "FAILED") or (state == "COMMITTED" and not is_dropped):
            world.witness.say(f"run {key} of {spec.name} is {state} for ever")
    numbers = Counter(key.number for key, state in witness.run_states.items() if state in ("COMMITTED", "PUBLISHED"))
    for number, count in numbers.items():
        if count > 1:
            world.witness.say(f"{count} items of run {number} of {spec.name} are committed")


def _check_consumed(world: World, spec: JobSpec, witness: JobWitness) -> None:
    for ctx in spec.contexts:
        known = witness.state.known.get(ctx, {})
        if spec.upstream is None:
            for path in world.files.below(world.root(ctx)):
                info = world.files.info(path)
                if info is not None and known.get(path) != info.version and not _is_late(spec, witness, ctx, info):
                    world.witness.say(f"{spec.name} never reads {path} ({info.version})")
        elif spec.policy != "ignore" and spec.name not in world.cut_off:
            _check_runs(world, spec, known, world.witness.jobs[spec.upstream])


def _is_late(spec: JobSpec, witness: JobWitness, ctx: str, info: FileInfo) -> bool:
    margin, newest_ms = spec.habit.late_after_ms, witness.state.newest.get(ctx)
    return margin is not None and newest_ms is not None and info.modified_ms < newest_ms - margin


def _check_runs(world: World, spec: JobSpec, known: Mapping[str, str], upstream: JobWitness) -> None:
    want = {str(number): str(upstream.revisions.get(number, 0)) for number in upstream.state.living}
    for number, revision in want.items():
        if known.get(number) != revision:
            world.witness.say(
                f"{spec.name} has revision {known.get(number)} of run {number} of {spec.upstream}, which has {revision}"
            )
    for number in known.keys() - want.keys():
        world.witness.say(f"{spec.name} keeps run {number} of {spec.upstream}, which was undone, and is not told")
    edge: Any = _items(world, spec.upstream or "").get(f"DOWN#{spec.name}")
    top = max((int(number) for number in known), default=0)
    if edge is not None and edge["run_number"] != top:
        world.witness.say(f"the edge of {spec.name} is at {edge['run_number']}, and it has consumed up to {top}")


def _check_target(world: World, spec: JobSpec, witness: JobWitness, output: str) -> None:
    found = world.files.rows(spec.target(output))
    if spec.mode is not Mode.APPEND:
        _check_overwritten(world, spec, witness, output, found)
        return
    want: Counter[str] = Counter()
    maybe: Counter[str] = Counter()
    for number, key in witness.committed.items():
        rows = witness.rows[number].get(output, Counter())
        if number in witness.cleaned:
            continue
        if witness.run_states.get(key) == "PUBLISHED":
            want.update(rows)
        else:
            maybe.update(rows)  # its publish was dropped, half done perhaps
    want.update(world.witness.side_rows.get(spec.target(output), Counter()))
    lost, extra = want - found, found - want - maybe
    if lost:
        world.witness.say(f"{spec.name}/{output} lacks {_told(lost)}")
    if extra:
        world.witness.say(f"{spec.name}/{output} holds beyond what was published {_told(extra)}")


def _check_overwritten(world: World, spec: JobSpec, witness: JobWitness, output: str, found: Counter[str]) -> None:
    double = {row: count for row, count in found.items() if count > 1}
    data_runs = [n for n in sorted(witness.committed) if witness.rows[n].get(output)]
    published = [n for n in data_runs if witness.run_states.get(witness.committed[n]) == "PUBLISHED"]
    if not data_runs or not published or published[-1] != data_runs[-1]:
        return  # what a dropped publish left is overwritten by the next run with data
    last = _last_to_write(witness, published)
    want = Counter() if last in witness.cleaned else witness.rows[last][output]
    lost = want - found
    extra = found - want if spec.mode is Mode.OVERWRITE else Counter(double)
    if lost:
        world.witness.say(f"{spec.name}/{output}: the last run {last} wrote {_told(lost)}, which is gone")
    if extra:
        world.witness.say(f"{spec.name}/{output} holds {_told(extra)} beside what the last run {last} wrote")
    if spec.mode is Mode.OVERWRITE_PARTITIONS:
        _check_partitions(world, witness, output, found)


def _last_to_write(witness: JobWitness, published: Sequence[int]) -> int:
    """Return the run whose rows a target has: the last one, or one that was replayed when all after it were cleaned."""
    for number in reversed(published):
        later = {other for other in published if other > number}
        if number not in witness.cleaned and later <= witness.cleaned_before.get(number, frozenset()) and later:
            return number
        if number not in witness.cleaned:
            break
    return published[-1]


def _check_partitions(world: World, witness: JobWitness, output: str, found: Counter[str]) -> None:
    """Each partition is what the last published run wrote that wrote there."""
    latest: dict[str, tuple[int, set[str]]] = {}
    is_plain = True
    for number in sorted(witness.committed):
        rows = witness.rows[number].get(output, Counter())
        is_published = witness.run_states.get(witness.committed[number]) == "PUBLISHED"
        is_plain = is_plain and is_published and number not in witness.cleaned
        # A replay leaves out what its run has skipped, though the run may have written of it: it has written there.
        revisions = [by.get(output, Counter()) for (of, _), by in witness.rows_of.items() if of == str(number)]
        for partition in {_partition(row) for each in revisions for row in each}:
            latest[partition] = (number, {row for row in rows if _partition(row) == partition})
    for partition, (number, rows_there) in latest.items():
        now = {row for row in found if _partition(row) == partition}
        if is_plain and now != rows_there:
            world.witness.say(f"partition {partition} holds {sorted(now)}, run {number} wrote {sorted(rows_there)}")


def _partition(row: str) -> str:
    return row.partition("@")[0].rpartition("-")[2]


def _check_sink(world: World, spec: JobSpec, witness: JobWitness, output: str) -> None:
    rows_by_fence = world.sinks[spec.name].rows[output]
    used: set[int] = set()
    for number, key in witness.committed.items():
        want = witness.rows[number].get(output, Counter())
        if _stored(world, spec, key, output).get("left_out"):
            _check_left_out(world, spec, key, output)
            want = Counter()
        landed = [fence for fence in witness.fences[key] if rows_by_fence.get(fence)]
        used |= set(landed)
        got = sum((rows_by_fence[fence] for fence in landed), Counter[str]())
        if got != want:
            world.witness.say(f"run {key} of {spec.name} wrote {_told(want)} and {output} holds {_told(got)} of it")
    for fence, rows in rows_by_fence.items():
        if fence in used or not rows:
            continue
        # Rows that were taken over belong to each item that took them; the last of them says what became of them.
        keys = sorted(key for key, fences in witness.fences.items() if fence in fences)
        if not keys or not (_has_moved(witness, keys[-1]) or _decision(world, spec, keys[-1], output) == "given-up"):
            world.witness.say(f"{output} of {spec.name} holds {_told(rows)} under {fence}, which no run committed")


def _check_left_out(world: World, spec: JobSpec, key: RunKey, output: str) -> None:
    """An output lacks the rows of its run where another one has them, and a person has said so."""
    landed = [
        other for other in spec.sinks if world.sinks[spec.name].has(other, world.witness.jobs[spec.name].fences[key])
    ]
    if not landed or _decision(world, spec, key, output) != "committed":
        world.witness.say(f"run {key} of {spec.name} is committed without {output}, and nobody has said so")


def _decision(world: World, spec: JobSpec, key: RunKey, output: str) -> str | None:
    decision: str | None = _stored(world, spec, key, output).get("facts", {}).get("settled_as")
    return decision


def _stored(world: World, spec: JobSpec, key: RunKey, output: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = world.witness.jobs[spec.name].items[key].get(f"output:{output}", {})
    return found


def _has_moved(witness: JobWitness, key: RunKey) -> bool:
    """Whether the position was another one when a run whose rows had landed was given up."""
    if key not in witness.abandoned_at:
        return False
    base, then = witness.abandoned_at[key]
    turned = [epoch for epoch, version in witness.before_epoch.items() if base <= version < then]
    if any(witness.kinds[epoch] in ("set", "undo") for epoch in turned):
        return True
    return witness.states[base].known != witness.states[then].known


def _check_staging(world: World, spec: JobSpec) -> None:
    for output in spec.outputs:
        below = world.files.below(f"{spec.target(output)}/_bookmarks")
        left = [path for path in below if f"/{spec.name}.side/" not in path]  # a collection takes those, in time
        if left:
            world.witness.say(f"staged for ever: {[path.removeprefix(LAKE) for path in left]}")


def _check_blobs(world: World) -> None:
    for pk in world.table.partitions():
        if "#JOB#" not in pk:
            continue
        for sk, item in world.table.items(pk).items():
            for name, value in item.items():
                for sha256 in _references(world, value, name.startswith("position:")):
                    if not _blob(world, sha256):
                        world.witness.say(f"blob {sha256[:12]} of {name} of {pk} {sk} is gone")


def _references(world: World, value: Value, is_position: bool) -> Iterator[str]:
    """Yield the blobs that a value refers to, and, where segments are never inline, those of a ledger's root."""
    if isinstance(value, dict):
        sha256, inline = value.get("sha256"), value.get("inline")
        if isinstance(sha256, str) and "chunks" in value:
            yield sha256
            inline = _blob(world, sha256)
        if is_position and world.settings.has_blobs and isinstance(inline, bytes):
            yield from (match.decode() for match in _HASH.findall(inline))
        for inner in value.values():
            yield from _references(world, inner, is_position)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(world, inner, is_position)


def _blob(world: World, sha256: str) -> bytes:
    chunks = world.table.items(f"{NAMESPACE}#BLOB#{sha256}")
    return b"".join(chunk["data"] for _, chunk in sorted(chunks.items()) if isinstance(chunk["data"], bytes))


def _told(rows: Counter[str]) -> str:
    return ", ".join(f"{row} x{count}" if count > 1 else row for row, count in sorted(rows.items())) or "nothing"
