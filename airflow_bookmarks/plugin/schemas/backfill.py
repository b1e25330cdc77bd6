"""What the routes of a backfill are asked for, and answer."""

from typing import Annotated

from pydantic import Field

from airflow_bookmarks.plugin.schemas.preview import ReadAgain
from airflow_bookmarks.plugin.schemas.requests import BaseRequest, Reason
from airflow_bookmarks.plugin.schemas.responses import ResponseModel, Window

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Names = Annotated[list[_Name], Field(default_factory=list, max_length=1000)]


class BackfillSpec(BaseRequest):
    """Take a job back with everything downstream of it.

    `to` is the last run to keep, as on the command line; null: back to before its first run. `leave` names readers that
    stay as they are, `keep` jobs whose output stays in spite of `clean`. `force` takes jobs back that a run holds.
    """

    to: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    clean: bool = False
    leave: _Names
    keep: _Names
    force: bool = False


class BackfillBody(BackfillSpec, Reason):
    """A backfill that is to be made; `expected_versions` are those of the plan that was looked at."""

    expected_versions: Annotated[dict[str, int], Field(max_length=1000)]
    confirm: str


class BackfillStepRow(ResponseModel):
    """What a backfill does to one job.

    `to_run` is the last run that it keeps (null: none); `because` maps each upstream that it goes back for to the last
    run that it may have read of it. `refused` says why it can't go back, and `stands` that it is there already.
    `is_root`: it was asked for; one that is not, and goes back for no upstream, does so for what undone runs have left.
    `doubts` is what going back takes with it that no figure tells. `seconds` is how long its next run is expected to
    take; null: not known. `state` has the values of `job.state` that change, before and after.
    """

    job: str
    dag_id: str | None
    task_id: str | None
    change: str
    to_run: int | None
    clean: bool
    because: dict[str, int]
    refused: str | None
    stands: bool
    is_root: bool
    doubts: list[str]
    seconds: float | None
    undone_run_count: int
    read_again: ReadAgain | None
    state: dict[str, Window]
    files_to_clean: int
    outputs_to_clean: int
    written_twice: list[str]
    holder: str | None


class BackfillDag(ResponseModel):
    """A DAG to trigger after a backfill, with the jobs that wait for it; null: they are run by no DAG.

    `is_here` tells whether this Airflow has that DAG: else somebody has to trigger it in another one.
    """

    dag_id: str | None
    jobs: list[str]
    is_here: bool


class BackfillPreview(ResponseModel):
    """The plan of a backfill: its jobs in the order in which they go back, and sums over those that move.

    `versions` go into the backfill as `expected_versions`. `unaffected` readers have read nothing of what is undone,
    and those `left_out` stay because somebody has said so. `seconds` is how long the runs after it are expected to
    take, where jobs that don't wait for each other run together; null: not known.
    """

    job: str
    steps: list[BackfillStepRow]
    refused_jobs: int
    undone_run_count: int
    read_again: ReadAgain
    files_to_clean: int
    outputs_to_clean: int
    seconds: float | None
    unaffected: list[str]
    left_out: list[str]
    dag_runs: list[BackfillDag]
    versions: dict[str, int]
