"""What the consumers wait for: kinds of conditions, dealt out by number, so that each kind is there from ten on."""

from __future__ import annotations

from typing import Any

UP, EARLY = "up", "early"  # the upstream of nearly all; and one that publishes while no triggerer runs
FIRST_RUN, SECOND_RUN = "manual__1", "manual__2"  # the DAG runs of the upstream
FIRST_TIME, SECOND_TIME = 1_700_000_000, 1_700_000_100  # of the files that they read: 22:13:20 and 22:15:00
CONSUMERS = "consumers"  # the DAG
AFTER_UP, AFTER_EARLY = "after_up", "after_early"  # the DAGs that watchers start


def task_id(number: int) -> str:
    """Return the task of a consumer."""
    return f"wait_{number:03d}"


def consumer(number: int) -> str:
    """Return the job of a consumer."""
    return f"reports.consumer_{number:03d}"


def condition(number: int) -> dict[str, Any]:
    """Return what a consumer waits for, as arguments of the sensor."""
    match number % 10:
        case 6:
            return {"job": UP, "watermark": "2023-11-14T22:15:00Z"}
        case 7:
            return {"job": UP, "run_number": 2}
        case 8:
            return {"job": UP, "upstream_dag_run_id": SECOND_RUN}
        case 9:
            return {"job": EARLY, "consumer": consumer(number)}
        case 5:
            return {"job": [UP, EARLY], "consumer": consumer(number)}
        case _:
            return {"job": UP, "consumer": consumer(number)}


def is_early(number: int) -> bool:
    """Whether a consumer is released while no triggerer runs, and so waits for its restart alone."""
    return bool(condition(number)["job"] == EARLY)


def has_read_the_first_run(number: int) -> bool:
    """Whether a consumer has to have consumed the first run of `UP`, to have something to wait for."""
    wait = condition(number)
    return "consumer" in wait and UP in wait["job"]


def released_by(number: int) -> list[tuple[str, str]]:
    """Return the jobs and run numbers that a consumer has to be given."""
    job = condition(number)["job"]
    return [(one, "2" if one == UP else "1") for one in ([job] if isinstance(job, str) else job)]
