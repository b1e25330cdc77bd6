"""The stages of the chain: each is a DAG with one task that has a bookmark, and reads what the stage before wrote."""

from __future__ import annotations

STAGES = ("a", "b", "c")  # a reads raw files, b what a has published, c what b has
TASK = "copy"
ROOT_VARIABLE = "CHAIN_ROOT"  # in the environment of Airflow: the folder below which the stages read and write
LINEUP_VARIABLE = "CHAIN_LINEUP"  # and the line-up of their targets
RAW = "raw"


def job(stage: str) -> str:
    """Return the job of a stage, which has the name that the operator gives it."""
    return f"{stage}.{TASK}"


def upstream(stage: str) -> str | None:
    """Return the stage that is read; None for the first one."""
    place = STAGES.index(stage)
    return STAGES[place - 1] if place else None


def from_there_on(stage: str) -> tuple[str, ...]:
    """Return a stage and those behind it."""
    return STAGES[STAGES.index(stage) :]
