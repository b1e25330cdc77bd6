"""Put jobs in the order of their data: each after all that it reads. A pure rule, no I/O."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def in_order(upstreams: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return jobs so that each comes after its upstreams; by name where that leaves a choice.

    Args:
        upstreams: the jobs that each job reads, by its name; those that are no key themselves are left out.

    Raises:
        ChangeRefusedError: jobs read each other in a circle.

    Example:
        >>> in_order({"report": ["clean", "prices"], "clean": ["raw"], "prices": [], "raw": []})
        ('prices', 'raw', 'clean', 'report')
    """
    sorter = TopologicalSorter({job: [each for each in above if each in upstreams] for job, above in upstreams.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise ChangeRefusedError(
            f"these jobs read each other in a circle, so none of them can go back first: {circle}. Nothing was "
            "changed. Rewind them one by one."
        ) from error
    found: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found += ready
        sorter.done(*ready)
    return tuple(found)


def longest_way(seconds: Mapping[str, float | None], upstreams: Mapping[str, Collection[str]]) -> float | None:
    """Return how long jobs take where those that don't wait for each other run at the same time; None: not known.

    Args:
        seconds: of each job, in the order of `in_order`; None: not known.
        upstreams: the jobs that each job reads.

    Example:
        >>> above = {"raw": [], "clean": ["raw"], "prices": [], "report": ["clean", "prices"]}
        >>> longest_way({"raw": 60.0, "prices": 10.0, "clean": 30.0, "report": 5.0}, above)
        95.0
    """
    done: dict[str, float] = {}
    for job, own in seconds.items():
        if own is None:
            return None
        done[job] = own + max((done[each] for each in upstreams.get(job, ()) if each in done), default=0.0)
    return max(done.values(), default=0.0)
