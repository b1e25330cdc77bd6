"""Access to a Spark session through its public API: its conf, its versions, what its actions have read."""

from __future__ import annotations

import contextlib
import logging
import threading
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import VersionMismatchError
from airflow_bookmarks.files.access import FileAccess
from airflow_bookmarks.files.hadoop.hdfs_settings import HdfsSettings
from airflow_bookmarks.files.s3.settings import S3Settings
from airflow_bookmarks.spark.features import SPARK_ERRORS, hidden_conf, is_connect, lists_once, tells_observations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import Column

    from airflow_bookmarks.spark.contexts.watermark import WatermarkColumn

log = logging.getLogger(__name__)

# Spark lists explicit paths by a job of its own above 32 of them; eight tasks do what 10,000 would (23 s against 1 s
# for 10,000 paths).
LISTING_CONF = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "8"}

_OF_S3 = ("spark.hadoop.fs.s3a.", "spark.bookmarks.s3.")  # by which credentials are given

_SOON_S = 0.5
_AT_LAST_S = 20.0


def active_session(spark: SparkSession | None) -> SparkSession | None:
    """Return the given session, or the active one; None if there is none."""
    return spark if spark is not None else SparkSession.getActiveSession()


def session_access(spark: SparkSession, conf: Mapping[str, str]) -> FileAccess:
    """Return how a session reaches S3 and HDFS, by its conf.

    Raises:
        OptionError: what its conf says of S3 or HDFS is unknown or contradicts itself.
    """
    if hidden := [key for key in hidden_conf(spark) if key.startswith(_OF_S3)]:
        log.warning(
            "this Spark Connect server does not show %s to its client: the driver plans and publishes in S3 with the "
            "credentials that boto3 finds (AWS_ACCESS_KEY_ID, a profile, a role), Spark with those of the server",
            ", ".join(hidden),
        )
    return FileAccess(S3Settings.of_spark_conf(conf), HdfsSettings.of_spark_conf(conf))


@contextlib.contextmanager
def changed_conf(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set conf values for the block, and put back what was there.

    Of blocks that overlap, in several threads, the last one to end does that.
    """
    with _CHANGING:
        changes = _CHANGES.setdefault(spark, {})
        for key, value in values.items():
            if key not in changes:
                changes[key] = _Change(spark.conf.get(key, None))
            changes[key].blocks += 1
            spark.conf.set(key, value)
    try:
        yield
    finally:
        with _CHANGING:
            for key in values:
                changes[key].blocks -= 1
                if changes[key].blocks == 0:
                    _put_back(spark, key, changes.pop(key).before)


def whole_text(spark: SparkSession, error: Exception) -> str:
    """Return the text of an error of Spark with its causes, as the stack of Java tells them.

    Spark 4.2 says that a database could not be reached, and keeps in the stack alone why. A Spark Connect client shows
    the stack by itself.
    """
    if is_connect(spark):
        return str(error)
    # An error asks the active session how it is told, which need not be the one that met it.
    with changed_conf(SparkSession.getActiveSession() or spark, {"spark.sql.pyspark.jvmStacktrace.enabled": "true"}):
        return str(error)


@dataclass(slots=True)
class _Change:
    """A conf value that was changed: what it was before, and how many blocks want it changed."""

    before: str | None
    blocks: int = 0


# Reentrant: a block that was left without its end ends where Python collects it, which may be within another one that
# just asks the session.
_CHANGING = threading.RLock()
_CHANGES: WeakKeyDictionary[SparkSession, dict[str, _Change]] = WeakKeyDictionary()


def _put_back(spark: SparkSession, key: str, value: str | None) -> None:
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


def listings_held(spark: SparkSession) -> AbstractContextManager[None]:
    """Let listings of planned files be cheap for the block, where each action plans its frames anew: on Connect."""
    return contextlib.nullcontext() if lists_once(spark) else changed_conf(spark, LISTING_CONF)


def check_pyspark_packages() -> None:
    """Make sure that `pyspark` and `pyspark-client`, which write the same folder, have one version.

    Raises:
        VersionMismatchError: they differ: Python UDFs and more would break in odd ways.
    """
    found = {name: _installed(name) for name in ("pyspark", "pyspark-client")}
    versions = {v for v in found.values() if v is not None}
    if len(versions) > 1:
        raise VersionMismatchError(
            f"pyspark {found['pyspark']} and pyspark-client {found['pyspark-client']} are installed together and "
            "write the same folder. Nothing was read or changed. Install one version of both in one command, e.g. "
            "pip install --force-reinstall 'airflow-provider-bookmarks[spark]'."
        )


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


class RowCount:
    """Counts the rows of a frame while an action of the user runs it (`DataFrame.observe`), at no extra pass.

    With `watermark` it also finds the greatest value of that column. Of the actions that run the frame, a classic
    session reports what the first has read, and Spark Connect what the last has.
    """

    def __init__(self, watermark: WatermarkColumn | None = None, name: str | None = None) -> None:
        self.watermark = watermark
        self._observation = Observation(name)
        self._session: SparkSession | None = None
        self._found: dict[str, Any] = {}
        self._waiting: threading.Thread | None = None

    @staticmethod
    def named(frame: DataFrame, name: str, watermark: WatermarkColumn | None) -> DataFrame:
        """Return the frame that a `RowCount` of this name counts which is made later, `of` the frame given here.

        So it counts for the first action after that, on a classic session.
        """
        return frame.observe(name, *_observed(watermark))

    def of(self, frame: DataFrame) -> DataFrame:
        """Return the frame that counts, or as it is where Spark would not tell what was counted."""
        if not tells_observations(frame.sparkSession):
            return frame
        self._session = frame.sparkSession
        return frame.observe(self._observation, *_observed(self.watermark))

    def forget(self) -> bool:
        """Forget on Spark Connect what actions have read up to now; return whether that is forgotten."""
        self._waiting = None
        self._found.clear()
        left: list[bool] = []

        def clear() -> None:
            self._observation.get.clear()  # the dict that the answers of actions are put into
            left.append(bool(self._observation.get))

        clearing = threading.Thread(target=clear, name="bookmark-rows", daemon=True)  # where it waits for an action
        clearing.start()
        clearing.join(_SOON_S)
        return left == [False]

    def rows(self) -> int | None:
        """Return the count of the first action that ran the frame, None where none did."""
        rows = self._answer().get("rows")
        return None if rows is None else int(rows)

    def greatest(self) -> str | None:
        """Return the greatest value that the first action has read; None: no value, or no action ran the frame."""
        value = self._answer().get("greatest")
        return None if self.watermark is None else self.watermark.text(value)

    def _answer(self) -> Mapping[str, Any]:
        if self._session is not None and not self._has_ended(_SOON_S):
            # Classic sessions report counts in the order in which actions ended. So one of our own, made now, is
            # reported after all others: what is not there by then never comes.
            last = RowCount()
            last.of(self._session.range(1)).collect()
            last._has_ended(_AT_LAST_S)
            self._has_ended(_SOON_S)
        return self._found

    def _has_ended(self, timeout_s: float) -> bool:
        # Observation.get waits for ever when no action ran the frame, and has no limit of its own: so a thread waits.
        if self._waiting is None:
            self._waiting = threading.Thread(target=self._wait, name="bookmark-rows", daemon=True)
            self._waiting.start()
        self._waiting.join(timeout_s)
        return not self._waiting.is_alive()

    def _wait(self) -> None:
        # The optimizer proved the frame empty and dropped the count, or no action ran it: an error, or no rows in it.
        with contextlib.suppress(*SPARK_ERRORS):
            self._found.update(self._observation.get)


def _observed(watermark: WatermarkColumn | None) -> list[Column]:
    greatest = [] if watermark is None else [watermark.observed().alias("greatest")]
    return [F.count(F.lit(1)).alias("rows"), *greatest]
