"""What a Spark lacks is found by asking for it, and told by an error before anything is read."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark import features, session
from airflow_bookmarks.spark.features import parameters_of, session_conf
from airflow_bookmarks.spark.session import changed_conf
from tests.spark.lake import Lake, lines_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def without_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark tell nothing of what it observed, as the Spark Connect of PySpark 3.5 does."""
    for module in (features, session):
        monkeypatch.setattr(module, "tells_observations", lambda spark: False)


@pytest.mark.usefixtures("without_observations")
@pytest.mark.parametrize(
    ("kwargs", "option"),
    [
        ({"count_rows": True}, "count_rows=True"),
        ({"watermark_column": "value"}, "watermark_column='value'"),
        ({"on_published": "delete"}, "on_published='delete'"),
    ],
)
def test_option_that_needs_observations_is_refused_where_there_are_none(
    lake: Lake, kwargs: dict[str, Any], option: str
) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=rf"context 'raw': {option} needs .*Nothing was read.*Leave it out"):
        read(lake, **kwargs)
    assert lake.state()[1] == 0
    assert lake.run() == ["a"]


def read(lake: Lake, **kwargs: Any) -> list[str]:
    with lake.job() as job:
        return lines_of(lake.read(job, **kwargs))


@pytest.mark.usefixtures("without_observations")
def test_unused_context_is_no_error_that_could_be_missed_where_there_are_no_observations(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match="on_unused='error' needs"):
        lake.run(on_unused="error")
    assert lake.state()[1] == 0


@pytest.mark.usefixtures("without_observations")
def test_rows_of_an_output_are_counted_where_there_are_no_observations(lake: Lake) -> None:
    lake.put("a.txt", "a", "b")
    assert lake.copy()["outputs"]["out"]["rows"] == 2
    assert lake.visible() != []


@pytest.mark.needs("secrets")
def test_conf_is_whole_and_hides_nothing_of_what_the_session_was_told(spark: SparkSession) -> None:
    told = {"spark.bookmarks.job": "a.b", "spark.bookmarks.password": "pass", "spark.bookmarks.odd": "a=b;c 'd' é"}
    for key, value in told.items():
        spark.conf.set(key, value)
    found = session_conf(spark)
    assert {key: found.get(key) for key in told} == told
    assert found["spark.sql.session.timeZone"] == "UTC"  # of the session
    assert "spark.app.name" in found  # of the application


def test_job_asks_for_the_conf_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SparkSession] = []

    def counted(spark: SparkSession) -> dict[str, str]:
        asked.append(spark)
        return session_conf(spark)

    monkeypatch.setattr(features, "session_conf", counted)
    lake.put("a.txt", "a")
    assert lake.run() == ["a"]
    assert len(asked) == 1


class ConfBySql:
    """The conf of a session that can't be asked for as a whole, as that of PySpark 3.5."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self.conf = spark, OneByOne(spark)

    def sql(self, text: str) -> Any:
        return self._spark.sql(text)


class OneByOne:
    def __init__(self, spark: SparkSession) -> None:
        self._conf = spark.conf

    def get(self, key: str, default: str | None) -> str | None:
        return self._conf.get(key, default)


@pytest.mark.needs("secrets")
def test_conf_that_can_only_be_asked_for_by_sql_is_the_same(spark: SparkSession) -> None:
    spark.conf.set("spark.bookmarks.password", "pass")
    by_sql: Any = ConfBySql(spark)
    assert session_conf(by_sql)["spark.bookmarks.password"] == "pass"
    assert session_conf(by_sql).keys() >= {"spark.app.name", "spark.sql.session.timeZone"}


class Hiding(ConfBySql):
    """The session of a server that shows nobody its secrets, as that of Spark Connect 4.0."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.conf = HidingConf(spark)


class HidingConf(OneByOne):
    def get(self, key: str, default: str | None) -> str | None:
        return default if key.endswith("secret.key") else super().get(key, default)


def test_secrets_of_s3_that_a_server_hides_are_named_and_no_others(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(features, "is_connect", lambda spark: True)
    for key in ("spark.hadoop.fs.s3a.secret.key", "spark.bookmarks.s3.secret.key", "spark.other.secret.key"):
        spark.conf.set(key, "kept to itself")
    hiding: Any = Hiding(spark)

    access = session.session_access(hiding, session_conf(hiding))

    assert access.s3.access.secret_key is None
    (warning,) = [record.getMessage() for record in caplog.records if record.name == session.log.name]
    assert "does not show spark.bookmarks.s3.secret.key, spark.hadoop.fs.s3a.secret.key to its client" in warning
    assert "spark.other" not in warning
    assert "kept to itself" not in caplog.text


class Collecting:
    """A session that collects garbage whenever its conf is asked, as may happen within any call."""

    def __init__(self, **values: str) -> None:
        self.values, self.conf = values, self

    def get(self, key: str, default: str | None) -> str | None:
        gc.collect()
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        gc.collect()
        self.values[key] = value

    def unset(self, key: str) -> None:
        del self.values[key]


@pytest.mark.seldom
@pytest.mark.parametrize("is_same", [True, False])
def test_block_of_changed_conf_that_is_collected_while_another_begins_stops_nothing(is_same: bool) -> None:
    left: Any = Collecting(a="1")
    session: Any = left if is_same else Collecting(a="1")
    block = changed_conf(left, {"a": "2"})
    block.__enter__()
    cycle: list[Any] = [block]
    cycle.append(cycle)
    del block, cycle

    with changed_conf(session, {"a": "3"}):
        assert session.values == {"a": "3"}

    assert (left.values, session.values) == ({"a": "1"}, {"a": "1"})


def test_method_that_spark_lacks_takes_nothing() -> None:
    assert parameters_of(DataFrameWriter, "csv")[:2] == ["mode", "compression"]
    assert parameters_of(DataFrameWriter, "no_such_format") == []
