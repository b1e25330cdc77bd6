"""Define waits as plain data: one condition on each of some jobs, and the answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.rules.condition import (
    Condition,
    DagRunDone,
    LogicalDateDone,
    NewsFor,
    NewsSince,
    RunReached,
    Verdict,
    WatermarkReached,
)

_MOST_SAID = 10  # jobs of one wait that a message describes


# ---- the question


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait for one condition on each of `jobs` (names, at least one); all of them have to satisfy it.

    Example:
        >>> Wait(("flights.clean",), RunReached(7)).as_dict()
        {'jobs': ['flights.clean'], 'run_number': '7'}
    """

    jobs: tuple[str, ...]
    condition: Condition

    def __post_init__(self) -> None:
        if not self.jobs:
            raise OptionError("job=[]: a wait is for at least one job. Nothing was read or changed.")
        for job in self.jobs:
            check_name("job", job)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Wait:
        """Return the wait that `as_dict` wrote.

        Raises:
            OptionError: it says something else. NameInvalidError: a name in it can't be one.
        """
        said = {name: value for name, value in stored.items() if name != "jobs"}
        jobs, ctx = stored.get("jobs"), said.pop("watermark_ctx", None)
        if not isinstance(jobs, list | tuple) or len(said) != 1 or (ctx is not None and "watermark" not in said):
            raise OptionError(
                f"{dict(stored)!r} is no wait: it has jobs, and one condition. Nothing was read or changed."
            )
        ((name, value),) = said.items()
        return cls(tuple(jobs), condition_of(name, str(value), ctx))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data: a list and texts."""
        return {"jobs": list(self.jobs), **_condition_as_dict(self.condition)}

    def __str__(self) -> str:
        return f"{self.condition} of {', '.join(map(repr, self.jobs))}"


def condition_of(name: str, value: str, watermark_ctx: str | None = None) -> Condition:
    """Return the condition that a sensor's argument `name` with the text `value` means.

    Raises:
        OptionError: no such condition, or the value is none. NameInvalidError: it can't be a name.
    """
    match name:
        case "consumer":
            return NewsFor(check_name("job", value))
        case "run_number":
            return RunReached.of(value)
        case "upstream_dag_run_id":
            return DagRunDone(value)
        case "upstream_logical_date":
            return LogicalDateDone.of(value)
        case "watermark":
            return WatermarkReached.of(value, watermark_ctx)
        case _:
            raise OptionError(f"{name!r} is no condition to wait for. Nothing was read or changed.")


def _condition_as_dict(condition: Condition) -> dict[str, Any]:
    match condition:
        case NewsFor(consumer):
            return {"consumer": consumer}
        case RunReached(number):
            return {"run_number": str(number)}
        case DagRunDone(dag_run_id):
            return {"upstream_dag_run_id": dag_run_id}
        case LogicalDateDone(moment):
            return {"upstream_logical_date": moment.isoformat()}
        case WatermarkReached(watermark, ctx):
            return {"watermark": watermark} | ({} if ctx is None else {"watermark_ctx": ctx})
        case NewsSince():
            raise OptionError("a wait for news since a place in history keeps that place itself, and is not stored.")


# ---- the answer

BEGINNING = NewsSince(0)


@dataclass(frozen=True, slots=True)
class WaitStatus:
    """Where one job of a wait stands: the verdict, the summary of the run that satisfies it (DEP-6 of XCom), and `now`,
    from where a `NewsSince` goes on.
    """

    job: str
    verdict: Verdict
    summary: Mapping[str, Any] | None = None
    now: NewsSince = BEGINNING


@dataclass(frozen=True, slots=True)
class WaitAnswer:
    """The answer to one wait: where each of its jobs stands, or the `error` that prevents an answer."""

    wait: Wait
    standings: tuple[WaitStatus, ...] = ()
    error: BookmarkError | None = None

    @property
    def is_met(self) -> bool:
        """Whether the wait is over."""
        return self.error is None and all(standing.verdict.is_met for standing in self.standings)

    @property
    def found(self) -> list[dict[str, Any]]:
        """The summaries of the runs that satisfied it, in the order of the jobs; empty while it is not met."""
        return [dict(standing.summary or {}) for standing in self.standings] if self.is_met else []

    @property
    def warnings(self) -> list[str]:
        """What a person should know although the wait is met: jobs that went back."""
        return [f"{s.job}: {s.verdict.standing}" for s in self.standings if s.verdict.rewound_to is not None]

    def __str__(self) -> str:
        # The jobs that are waited for come first: among hundreds they explain why it waits.
        ordered = sorted(self.standings, key=lambda standing: standing.verdict.is_met)
        said = [f"{s.job!r}: {s.verdict.standing}" for s in ordered[:_MOST_SAID]]
        if len(ordered) > _MOST_SAID:
            met = sum(standing.verdict.is_met for standing in ordered)
            said.append(f"and {len(ordered) - _MOST_SAID} more; {met} of {len(ordered)} jobs are there")
        return f"It waits for {self.wait.condition}. Where it stands: {self.error or '; '.join(said)}."
