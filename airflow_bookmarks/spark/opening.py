"""How a job opens: its session, how it reaches files, what the operator has said, its log, and its run."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.databases.access import ACCESS_PREFIX, EnvironmentAccess
from airflow_bookmarks.files.access import present_access
from airflow_bookmarks.lifecycle.history.shards import check_not_sharded
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.delta.sink import DeltaSink
from airflow_bookmarks.sinks.files.catalog import SPARK
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.iceberg.sink import IcebergSink
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.store.bookmark_store import BookmarkStore

# Nothing that imports pyspark: a job without Spark works where it isn't installed.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from airflow_bookmarks.files.access import FileAccess
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.run.session import RunSession
    from airflow_bookmarks.sinks.registry import SinkRegistry
    from airflow_bookmarks.spark.arguments import Arguments


def session_of(given: SparkSession | None) -> SparkSession | None:
    """Return the given session, or the active one. Without Spark it isn't imported: then no session can be active."""
    if given is None and "pyspark.sql" not in sys.modules:
        return None
    from airflow_bookmarks.spark.session import active_session, check_pyspark_packages

    check_pyspark_packages()
    return active_session(given)


def conf_of(spark: SparkSession | None) -> Mapping[str, str] | None:
    """Return the conf of the session, None without one. It costs a message to Spark for each entry: ask for it once."""
    if spark is None:
        return None
    from airflow_bookmarks.spark.features import session_conf

    return session_conf(spark)


def access_of(spark: SparkSession | None, conf: Mapping[str, str] | None) -> FileAccess:
    """Return how files are reached: as the conf of the session says, without one as the process does."""
    if spark is None or conf is None:
        return present_access()
    from airflow_bookmarks.spark.session import session_access

    return session_access(spark, conf)


def reach_databases(store: BookmarkStore, conf: Mapping[str, str] | None) -> None:
    """Let a store find the logins of databases as the conf of the session says, unless it has an access of its own."""
    if conf is not None and store.databases is BookmarkStore.databases:
        store.databases = EnvironmentAccess(
            {key: value for key, value in conf.items() if key.startswith(ACCESS_PREFIX)}
        )


def settings_of(conf: Mapping[str, str] | None) -> Settings:
    """Return what the operator has said in the conf of the session; nothing without one."""
    return Settings() if conf is None else Settings.from_conf(conf)


def show_log() -> None:
    """Send our log lines to stderr if logging is not configured, because spark-submit does not."""
    ours = logging.getLogger("airflow_bookmarks")
    if not ours.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        ours.addHandler(handler)
        ours.setLevel(logging.INFO)


def sinks_of(spark: SparkSession | None) -> SinkRegistry:
    """Return the kinds of sink as a driver knows them: its session also settles what tables got.

    Recovery comes before the script names its outputs, so the session is there from the beginning.
    """
    if spark is None:
        return SINKS
    from airflow_bookmarks.spark.iceberg.session import IcebergSession
    from airflow_bookmarks.spark.sinks.delta_session import SessionTables
    from airflow_bookmarks.spark.tables.catalog import SparkCatalog

    return SINKS.extended(
        DeltaSink(SessionTables(spark)), IcebergSink(IcebergSession(spark)), FilesSink({SPARK: SparkCatalog(spark)})
    )


def begin_run(
    given: Arguments,
    name: str,
    environment: RunEnvironment,
    sinks: SinkRegistry,
    *,
    in_batches: bool,
    shard: int | None,
) -> RunSession:
    """Begin the run that a job was opened for: enabled, replayed, or one that changes nothing.

    Args:
        given: the arguments of the job.
        name: the name of the job, or of its virtual shard.
        environment: time, threads and faults.
        sinks: the kinds of sink, by which what earlier runs left is settled.
        in_batches: whether it is one of a loop.
        shard: the number of the virtual shard.

    Raises:
        JobBusyError: another run holds the job.
        AttemptRefusedError: this attempt was killed.
        ChangeRefusedError: the shards of this job have bookmarks, so it can't get one as a whole.
    """
    common = (given.store, name, given.identity)
    if given.choice.option is not Option.ENABLE:
        return DetachedRun.begin(
            *common, given.choice, environment, start=given.start, in_batches=in_batches, sinks=sinks
        )
    if given.replay is not None:
        return ReplayRun.begin_replay(
            *common, environment, given.replay, on_conflict=given.on_conflict, wait_for=given.wait_for, sinks=sinks
        )
    run = ActiveRun.begin(
        *common,
        environment,
        on_conflict=given.on_conflict,
        wait_for=given.wait_for,
        start=given.start,
        in_batches=in_batches,
        sinks=sinks,
    )
    if shard is None and run.run_number == 1:  # only a first run can be the one that begins beside the shards
        _check_whole(run, given, name)
    return run


def _check_whole(run: ActiveRun, given: Arguments, name: str) -> None:
    try:
        check_not_sharded(given.store, name)
    except BaseException as error:  # nobody has the run yet, so nobody else can abort it
        run.abort(cause_of(error))
        raise
