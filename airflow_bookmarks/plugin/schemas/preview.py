"""Answers about what a change would do."""

from typing import Any

from airflow_bookmarks.plugin.schemas.responses import ResponseModel, Window


class ReadAgain(ResponseModel):
    """What would be read again; None where only the source could tell.

    `amounts` has by its unit what is not counted in files.
    """

    files: int | None
    bytes: int | None
    rows: int | None
    amounts: dict[str, int | None] = {}


class NeverRead(ResponseModel):
    """What a set skips for good; numbers are null where it is not counted so, and `unknown` says why nothing is known.

    `amounts` has by its unit what else is counted: "versions", "snapshots".
    """

    files: int | None
    bytes: int | None
    runs: list[int]
    consumers: list[str]
    unknown: str | None
    rows: int | None = None
    amounts: dict[str, int] = {}


class Preview(ResponseModel):
    """What a change would do. `version` goes into the change as `expected_version`.

    `state` has the values of `job.state` that it changes, `moved` the counts of a relocation. `written_twice` are the
    targets that would hold rows twice; of those in `written_twice_unknown` too it is not known whether the undone runs
    have published there, because only a database could tell.
    `needs_approval`: the job is protected, so the change is to be asked for as a request. `stands`: the job stands
    there already, so a reset or rewind would change nothing.
    """

    job: str
    change: str
    version: int
    to_run: int
    undone_runs: list[int]
    undone_run_count: int
    unreadable_runs: list[str]
    read_again: ReadAgain
    watermarks: dict[str, Window]
    state: dict[str, Window] = {}
    moved: dict[str, Any] | None = None
    consumers: dict[str, int]
    hidden_consumers: int
    written_twice: list[str]
    written_twice_unknown: list[str] = []
    files_to_clean: int
    outputs_to_clean: int = 0
    files_left_by_undone_runs: int | None = 0
    never_read: NeverRead | None = None
    holder: str | None
    needs_approval: bool
    stands: bool


class ShardPreview(ResponseModel):
    """What a change would do in one virtual shard; `state` has the values of `job.state` that it changes."""

    version: int
    to_run: int
    undone_run_count: int
    read_again: ReadAgain
    state: dict[str, Window] = {}


class ShardedPreview(ResponseModel):
    """What a change of a sharded job would do: sums over its virtual shards, and each that would change.

    `version`, the sum of theirs, goes into the change as `expected_version`. `unchanged_shards` counts those that stand
    there already. `consumers` maps each job that has consumed an undone run of a shard to the highest one; `holders`
    each shard that a run holds to that run.
    """

    job: str
    change: str
    version: int
    shards: int
    unchanged_shards: int
    undone_run_count: int
    unreadable_runs: list[str]
    read_again: ReadAgain
    consumers: dict[str, int]
    hidden_consumers: int
    written_twice: list[str]
    written_twice_unknown: list[str] = []
    files_to_clean: int
    outputs_to_clean: int = 0
    files_left_by_undone_runs: int | None
    holders: dict[str, str]
    by_shard: dict[str, ShardPreview]


class OwnershipRow(ResponseModel):
    """Whose a job is. Of a sharded job `version` is the sum, and `owner` null where its shards have several."""

    version: int
    owner: str | None
    shared_with: list[str]


class OwnershipPreview(ResponseModel):
    """What a share, unshare or hand-over would do.

    `seen` goes into the change as `expected_version`, `expected_owner` and `expected_shared_with`. `owner` and
    `shared_with` are those afterwards; `asked_of` are the DAGs on which rights are asked now, `asked_of_after` those
    then. `is_seen`: this Airflow has the DAG that is named, and the user may look at it. `may_change_after`: whether
    the user may still change the job then. `shards` counts the virtual shards that would change; null: it has none.
    """

    job: str
    change: str
    dag: str
    seen: OwnershipRow
    owner: str | None
    shared_with: list[str]
    asked_of: list[str]
    asked_of_after: list[str]
    is_seen: bool
    may_change_after: bool
    shards: int | None
    needs_approval: bool
