"""The interface of an operator to a try of its task, however the application is submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Asset, AssetAlias, Context

    from airflow_bookmarks.core.option import OnUnused
    from airflow_bookmarks.operators.task.task_config import OnClear, OnConflict, OnEmpty, TaskConfig

ConfFor = Callable[[dict[str, Any]], Mapping[str, Any]]
AssetPartitions = Callable[[dict[str, Any]], Sequence[str]]


class Submitter(Protocol):
    """An operator with a bookmark: the arguments that `BookmarkedSubmission` lists, and the way it submits."""

    bookmark_on_conflict: OnConflict
    bookmark_on_unused: OnUnused
    bookmark_on_clear: OnClear
    skip_when_empty: bool
    on_empty: OnEmpty
    conf_for: ConfFor | None
    bookmark_asset: Asset | None
    asset_partitions: AssetPartitions | None
    bookmarks_conn_id: str
    ship_runtime: bool
    glue: bool
    has_s3_of_its_own: ClassVar[bool]
    retries: int | None
    outlets: list[Any]

    @property
    def driver_exit_code(self) -> int | None:
        """That of the driver once the submit has failed, from 0 to 255; None where the way of submitting tells none."""
        ...

    @property
    def asset_alias(self) -> AssetAlias | None:
        """The outlet through which events of `bookmark_asset` go out; None without one."""
        ...

    def task_config(self) -> TaskConfig:
        """Return the task's bookmark arguments."""
        ...

    def script_arguments(self) -> Sequence[Any] | None:
        """Return the arguments of the script; None where they are not known yet."""
        ...

    def user_conf(self) -> Any:
        """Return the Spark conf that the user gave: a mapping, or None."""
        ...

    def submit(self, context: Context, conf: Mapping[str, str], runtime: Path | None) -> Any:
        """Submit with `conf` in place of the user's and, if it is to be shipped, the runtime; wait for the end."""
        ...
