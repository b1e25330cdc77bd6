"""Promises FILE-1, SINK-1, SINK-2: every format of files is read and written; what a Spark lacks is named.

Those of `format_promises.py` are run with a Spark of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import OptionError, SourceSwitchedError
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark import format_promises
from tests.spark.lake import Lake
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(format_promises, tmp_path_factory.mktemp("formats"), pytestconfig)


@pytest.mark.xdist_group("formats")  # a Spark of its own, beside that of the other tests
@pytest.mark.parametrize("promise", names_of(format_promises))
def test_of_every_format(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()


def test_avro_without_its_package_is_an_error_that_names_it_before_anything_is_planned(lake: Lake) -> None:
    lake.put("a.avro", "a")
    package = rf"no format 'avro'.*Nothing was.*--packages org\.apache\.spark:spark-avro_2\.1[23]:{lake.spark.version}"
    with pytest.raises(OptionError, match=package), lake.job() as job:
        job.read("raw").format("avro").load(lake.path("raw"))
    assert lake.state()[1] == 0


def test_avro_sink_without_its_package_is_an_error_before_anything_is_staged(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=r"output 'out'.*no format 'avro'"), lake.job() as job:
        job.write(lake.read(job), "out").format("avro").save(lake.path("copy"))
    assert lake.staged("copy") == []
    assert lake.state()[1] == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda lake, job: job.read("raw").xml(lake.path("raw"), rowTag="row"),
        lambda lake, job: job.write(lake.spark.range(1), "out").xml(lake.path("copy"), rowTag="row"),
    ],
    ids=["read", "write"],
)
def test_xml_by_the_package_of_old_sparks_is_refused_before_anything_is_planned_or_staged(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, use: Callable[[Lake, BookmarkedJob], object]
) -> None:
    def load(*_: object, **__: object) -> DataFrame:
        raise IllegalArgumentException("'path' must be specified for XML data.")

    monkeypatch.setattr(type(lake.spark.read), "load", load)
    lake.put("a.xml", "<rows><row><a>1</a></row></rows>")
    why = r"the format 'xml' by a package alone.*Nothing was read, written or changed\..*4\.0 or later"
    with pytest.raises(OptionError, match=why), lake.job() as job:
        use(lake, job)
    assert lake.staged("copy") == []
    assert lake.state()[1] == 0


@pytest.mark.needs("xml")
def test_xml_without_a_row_tag_is_told_by_spark(lake: Lake) -> None:
    lake.put("a.xml", "<rows><row><a>1</a></row></rows>")
    with pytest.raises(Exception, match="rowTag"), lake.job() as job:
        job.read("raw").xml(lake.path("raw"))
    assert lake.state()[1] == 0


def test_context_that_was_read_as_another_format_is_refused(lake: Lake) -> None:
    lake.put("a", '{"a": 1}')
    with lake.job() as job:
        assert job.read("raw").json(lake.path("raw")).count() == 1
    lake.put("b", '{"a": 2}')
    with pytest.raises(SourceSwitchedError, match=r"raw as json'.*raw as csv'"), lake.job() as job:
        job.read("raw").csv(lake.path("raw"))
    with lake.job() as job:
        assert [row.a for row in job.read("raw").json(lake.path("raw")).collect()] == [2]
