"""The bookmark part of an operator: its arguments, checked when the DAG file is parsed.

The worker's part is in `task_try`, which is imported when a task runs: it needs the lifecycle and numpy, and a DAG
processor, which parses every file again and again, needs neither.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow.sdk import Asset, AssetAlias, BaseOperator, BaseOperatorLink

from airflow_bookmarks.airflow_compat import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow_bookmarks.core.errors import NameInvalidError, OptionError
from airflow_bookmarks.core.option import OnUnused
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.operators.task.glue_arguments import GlueArguments
from airflow_bookmarks.operators.task.task_config import (
    OnClear,
    OnConflict,
    OnEmpty,
    TaskConfig,
    check_arguments,
    check_conf,
)

_DEFERRED_IN = "bookmark_deferred_in"  # the try, among what the task resumes with

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from airflow_bookmarks.operators.task.submitter import AssetPartitions, ConfFor
    from airflow_bookmarks.operators.task.task_try import TaskTry


class BookmarkedSubmission(BaseOperator):
    """Add a bookmark to an operator; the base of all operators that submit a Spark application.

    List it before the provider's operator among the bases: its `execute` submits by that operator. The class with both
    bases adds `bookmark_template_fields` to its template fields, and its `submission` adds settings and runtime to what
    is submitted.

    Args:
        bookmark_job: name of the job, the key of its bookmark; default: `<dag_id>.<task_id>`, with the map index for
            mapped tasks. (templated)
        bookmark_option: "enable", "pause" or "disable", or Glue's spellings; default: that of the connection, else
            "enable". (templated)
        bookmark_from, bookmark_to: with "pause" only: reread the input of the runs after FROM up to and including TO,
            given as run numbers or run ids. (templated)
        bookmark_upstream: names of the jobs that the script reads with `.upstream(...)`. (templated)
        bookmark_upstream_until: the result of an operator or sensor of an upstream, or a list of results: the job reads
            up to and including those runs, even if more are published. Not of a sharded upstream. (templated)
        bookmark_shard: this task's share of a sharded job: "i/n", task i of n, counted from 0, or "lo:hi" of the 64
            virtual shards; for mapped tasks the result of `core.shard.shards(n)` or `ranges(...)`. The default name of
            the job then has no map index, and the script loops over `BookmarkedJob(spark).shards()`. (templated)
        bookmark_manifest_uri: a folder to which the driver writes each plan before it reads it, in Glue's format:
            `<uri>/partitionlisting/<job>/<run id>/<ctx>.input-files.json`. (templated)
        bookmark_on_conflict: what to do if another run holds the job: "fail" (default) before Spark starts, or "wait"
            in the driver.
        bookmark_on_unused: what to do if the script reads a context and does not use it: "warn" (default), "error"
            (nothing is committed) or "ignore".
        bookmark_on_clear: what to do if a task with a finished run is cleared: "replay" (default) reads its stored
            plan again and replaces its output, "skip" succeeds without Spark, "fail" refuses. A retry never replays.
        skip_when_empty: first check without Spark whether the sources recorded by the last run have anything new; if
            not, apply `on_empty`. If that can't be determined, Spark runs.
        on_empty: "succeed" (default) commits an empty run, as Spark would; "skip" skips the task without a run.
        conf_for: a function of the pending input (the result of `BookmarkHook.pending`: `files`, `bytes`, `contexts`,
            ...) that returns Spark conf, to size resources by it; `conf` overrides it.
        bookmark_asset: an asset that gets an event, with the summary as its extra, when the task has published
            something. It is only a hint: the consumer's bookmark decides what there is to read.
        asset_partitions: a function of the summary that returns partition keys, each of which gets an event of its own.
            DAGs scheduled by the asset without partitions do not see such events.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.
        ship_runtime: ship the runtime with the application; False if the driver's image has the package.
        glue: whether the script is one for AWS Glue, which imports `awsglue`: this package's takes its place, and the
            script gets `--JOB_NAME`, `--JOB_RUN_ID`, `--job-bookmark-option` and, with `bookmark_manifest_uri`,
            `--TempDir`. What its arguments have already wins; where that contradicts an argument here, it is an error.

    Raises:
        OptionError: in the constructor, for an unknown or contradictory argument without a template. With a template,
            it fails the task before Spark starts, without a retry.
        JobBusyError: another run holds the job. NotCommittedError: Spark ended well, and nothing was committed.
    """

    bookmark_template_fields: ClassVar[tuple[str, ...]] = (
        "bookmark_job",
        "bookmark_option",
        "bookmark_from",
        "bookmark_to",
        "bookmark_upstream",
        "bookmark_upstream_until",
        "bookmark_shard",
        "bookmark_manifest_uri",
    )

    # A subclass of an operator with links of its own names both, as it does with template fields.
    operator_extra_links: Collection[BaseOperatorLink] = (BookmarkLink(),)

    # Whether s3:// leads to a file system of the service itself, which S3A is not to replace.
    has_s3_of_its_own: ClassVar[bool] = False

    _task: TaskTry | None = None

    # Each argument by name, and not by **kwargs: Airflow fills from default_args what it finds in this signature.
    def __init__(
        self,
        *,
        bookmark_job: str | None = None,
        bookmark_option: str | None = None,
        bookmark_from: str | int | None = None,
        bookmark_to: str | int | None = None,
        bookmark_upstream: Sequence[str] = (),
        bookmark_upstream_until: Any = None,
        bookmark_shard: str | None = None,
        bookmark_manifest_uri: str | None = None,
        bookmark_on_conflict: OnConflict = "fail",
        bookmark_on_unused: OnUnused = "warn",
        bookmark_on_clear: OnClear = "replay",
        skip_when_empty: bool = False,
        on_empty: OnEmpty = "succeed",
        conf_for: ConfFor | None = None,
        bookmark_asset: Asset | None = None,
        asset_partitions: AssetPartitions | None = None,
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        ship_runtime: bool = True,
        glue: bool = False,
        **kwargs: Any,
    ) -> None:
        check_arguments(kwargs, _argument_names(type(self)))
        super().__init__(**kwargs)
        self.bookmark_job = bookmark_job
        self.bookmark_option = bookmark_option
        self.bookmark_from = bookmark_from
        self.bookmark_to = bookmark_to
        self.bookmark_upstream = bookmark_upstream
        self.bookmark_upstream_until = bookmark_upstream_until
        self.bookmark_shard = bookmark_shard
        self.bookmark_manifest_uri = bookmark_manifest_uri
        self.bookmark_on_conflict = bookmark_on_conflict
        self.bookmark_on_unused = bookmark_on_unused
        self.bookmark_on_clear = bookmark_on_clear
        self.skip_when_empty = skip_when_empty
        self.on_empty = on_empty
        self.conf_for = conf_for
        self.bookmark_asset = bookmark_asset
        self.asset_partitions = asset_partitions
        self.bookmarks_conn_id = bookmarks_conn_id
        self.ship_runtime = ship_runtime
        self.glue = glue
        self._check_arguments()
        alias = self.asset_alias
        if alias is not None and asset_partitions is None:
            self.outlets = [*self.outlets, alias]

    def _check_arguments(self) -> None:
        _check_choice("bookmark_on_conflict", self.bookmark_on_conflict, get_args(OnConflict))
        _check_choice("bookmark_on_unused", self.bookmark_on_unused, get_args(OnUnused))
        _check_choice("bookmark_on_clear", self.bookmark_on_clear, get_args(OnClear))
        _check_choice("on_empty", self.on_empty, get_args(OnEmpty))
        if self.on_empty != "succeed" and not self.skip_when_empty:
            raise OptionError(
                f"on_empty={self.on_empty!r} is given without skip_when_empty=True. Nothing was read or changed."
            )
        asset = self.bookmark_asset
        if asset is not None and not isinstance(asset, Asset):
            raise OptionError(f"bookmark_asset={asset!r}: expected an Asset. Nothing was read or changed.")
        for name in ("conf_for", "asset_partitions"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise OptionError(f"{name}={getattr(self, name)!r}: expected a function. Nothing was read or changed.")
        if self.asset_partitions is not None and self.bookmark_asset is None:
            raise OptionError("asset_partitions is given without bookmark_asset. Nothing was read or changed.")
        if self.bookmark_shard is not None and (self.skip_when_empty or self.conf_for is not None):
            raise OptionError(
                "skip_when_empty and conf_for look at one bookmark, and bookmark_shard is of several. Nothing was read "
                "or changed. Leave them out."
            )
        if self.glue and self.bookmark_shard is not None:
            raise OptionError(
                "glue=True with bookmark_shard: a script for AWS Glue makes one run of one job, and no loop over "
                "shards. Nothing was read or changed. Leave one of them out."
            )
        self.task_config().check_literals()
        self.check_literal_conf()

    # ---- for subclasses

    def user_conf(self) -> Any:
        """Return the Spark conf that the user gave: a mapping, None, or a template that is not rendered yet."""
        return getattr(self, "conf", None)

    def script_arguments(self) -> Sequence[Any] | None:
        """Return the arguments of the script; None where they are not known yet, or can't be given.

        Where `glue` is True, `submit` adds `added_arguments` to them.
        """
        given = getattr(self, "application_args", None)
        return given if isinstance(given, list | tuple) else None

    @property
    def added_arguments(self) -> list[str]:
        """What this try adds to the arguments of the script: with `glue` those of its job, else nothing."""
        return [] if self._task is None else self._task.added_arguments

    def check_literal_conf(self) -> None:
        """Check the parts of the conf that are known when the DAG file is parsed.

        Raises:
            OptionError: it sets what the operator sets.
        """
        check_conf(self.user_conf())

    def submit(self, context: Context, conf: Mapping[str, str], runtime: Path | None) -> Any:
        """Submit with `conf` in place of the user's and, if it is to be shipped, the runtime; wait for the end.

        Raises:
            AirflowException, RuntimeError: Spark failed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it submits")

    # ---- the life of a task

    def execute(self, context: Context) -> dict[str, Any]:
        """Submit, and see to it that what was committed is published; return the summary of the run.

        Raises:
            AirflowFailException: what was asked for is wrong (an option, a name, the connection): no retry mends that.
            BookmarkError: before Spark starts, or: Spark ended well and nothing was committed.
            AirflowException, RuntimeError: Spark failed; with a note on where the bookmark stands.
        """
        return self._live(context, lambda task: task.run())

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> dict[str, Any]:
        """Go on after a deferral: do what the provider's operator does then, and finish as if this one had waited.

        Raises:
            as `execute` does.
        """
        given = dict(next_kwargs or {})
        deferred_in = given.pop(_DEFERRED_IN, None)
        if deferred_in is not None and deferred_in != context["ti"].try_number:
            # Airflow 3.0 hands a retry what the try before was deferred for, and with it how that one ended.
            return self.execute(context)
        goes_on = partial(super().resume_execution, next_method, given, context)
        return self._live(context, lambda task: task.go_on(goes_on))

    def _live(self, context: Context, live: Callable[[TaskTry], tuple[dict[str, Any], str]]) -> dict[str, Any]:
        outcome: str | None = "failed"
        try:
            summary, outcome = live(self._begin(context))
            return summary
        except (OptionError, NameInvalidError) as error:
            raise AirflowFailException(str(error)) from error
        except AirflowSkipException:
            outcome = "skipped"
            raise
        except TaskDeferred as deferred:
            outcome = None
            if self._task is not None:
                deferred.trigger = self._task.fencing(deferred.trigger)
                deferred.kwargs = {**(deferred.kwargs or {}), _DEFERRED_IN: context["ti"].try_number}
            raise
        finally:
            if self._task is not None and outcome is not None:
                self._task.count(outcome)

    def _begin(self, context: Context) -> TaskTry:
        from airflow_bookmarks.operators.task.task_try import TaskTry

        self._task = None  # what fails now is not of the try before
        self._task = TaskTry.of(self, context)
        return self._task

    def on_kill(self) -> None:
        """Stop Spark, then fence this try: a driver that outlives the submit can't commit any more."""
        try:
            super().on_kill()
        finally:
            if self._task is not None:  # otherwise it has not got as far as Spark
                self._task.fence()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return what the task read and wrote, for Airflow's OpenLineage provider, which asks for it by this name."""
        from airflow_bookmarks.operators.task.openlineage import operator_lineage

        return None if self._task is None else operator_lineage(self._task.lineage())

    # ---- what a try asks

    def task_config(self) -> TaskConfig:
        """Return the task's bookmark arguments, with templates as far as they are rendered."""
        config = TaskConfig(
            job=self.bookmark_job,
            option=self.bookmark_option,
            from_run=self.bookmark_from,
            to_run=self.bookmark_to,
            upstream=self.bookmark_upstream,
            upstream_until=self.bookmark_upstream_until,
            shard=self.bookmark_shard,
            manifest_uri=self.bookmark_manifest_uri,
        )
        return GlueArguments.of(self.script_arguments()).config(config) if self.glue else config

    @property
    def driver_exit_code(self) -> int | None:
        """That of the driver once the submit has failed; None: it is not known, as services tell none."""
        return None

    @property
    def asset_alias(self) -> AssetAlias | None:
        """The outlet through which events of `bookmark_asset` go out: an asset itself has one at each success."""
        return None if self.bookmark_asset is None else AssetAlias(f"bookmark {self.bookmark_asset.name}")


@cache  # for every operator of a DAG file
def _argument_names(operator: type[BookmarkedSubmission]) -> tuple[str, ...]:
    """Return the names of the arguments that the bookmark has in a class of operators.

    Those of its subclasses are among them: Airflow hands all of `default_args` down to each class.
    """
    classes = [each for each in operator.__mro__ if issubclass(each, BookmarkedSubmission)]
    names = dict.fromkeys(name for each in classes for name in inspect.signature(each.__init__).parameters)
    return tuple(name for name in names if name.startswith("bookmark"))


def _check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        *most, last = (repr(one) for one in known)
        raise OptionError(f"{name}={value!r}: expected {', '.join(most)} or {last}. Nothing was read or changed.")
