"""Playing a world from its beginning to its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from tests.chaos.sim.ending import check, run_alone
from tests.chaos.sim.life import cast, land
from tests.chaos.sim.pilot import ReplayPilot
from tests.chaos.sim.scheduler import Decision, Stuck
from tests.chaos.sim.world import Outcome, Settings, World, present


def play(settings: Settings, decisions: Sequence[Decision] | None = None, *, is_traced: bool = False) -> Outcome:
    """Play the world of `settings`; with `decisions` follow these, else draw them from the seed."""
    world = World(settings, None if decisions is None else ReplayPilot(decisions), is_traced=is_traced)
    with _silence(), present(world):
        try:
            _play(world)
        except Stuck as error:
            world.witness.say(f"stuck: {error}")
        finally:
            world.scheduler.end()
    scheduler = world.scheduler
    return Outcome(
        settings,
        tuple(world.witness.violations),
        scheduler.steps,
        {fate.name: count for fate, count in scheduler.faults.items()},
        dict(world.witness.judged),
        tuple(scheduler.trace),
        tuple(scheduler.decisions),
    )


@contextmanager
def _silence() -> Iterator[None]:
    """Keep a thousand worlds out of the log, and leave the log to others afterwards."""
    log = logging.getLogger("airflow_bookmarks")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _play(world: World) -> None:
    lander = world.process("first files", is_exempt=True)
    world.spawn(lander, lambda: land(world, lander, 2, eager=True))
    world.scheduler.run()
    for number in range(world.settings.quiet_runs):
        run_alone(world, 1, is_first_alone=world.settings.is_behind)
        more = world.process(f"more files {number}", is_exempt=True)
        world.spawn(more, lambda p=more: land(world, p, 2, eager=True))  # type: ignore[misc]
        world.scheduler.run()
    roles = list(world.settings.roles)
    eras = world.settings.eras
    for era in range(eras):
        now = [role for role in roles if world.random(f"{role}/era").randrange(eras) == era]
        for role in now:
            process, body = cast(world, role)
            process.start += world.scheduler.steps
            world.spawn(process, body)
        world.scheduler.run()
        world.scheduler.end()
        if era + 1 < eras:
            run_alone(world, 1)
            world.scheduler.now += timedelta(days=100)
    if world.witness.violations:
        return
    run_alone(world)
    if not world.witness.violations:
        check(world)
