"""The jars for each Spark: what the page tells users is what the tests fetch."""

from __future__ import annotations

import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tools import jars
from tools.jars import FOR_SPARK, SETS, Artifact, fetch, fetch_for_spark

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark_versions.md"


def test_page_has_the_table_of_the_code() -> None:
    table = _PAGE.read_text().partition("## Jars")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]

    assert rows[2:] == [
        [spark, each.scala, each.hadoop, each.sdk, each.analytics, each.avro, each.connect or "built in"]
        for spark, each in FOR_SPARK.items()
    ]


def test_page_has_the_packages_of_table_formats() -> None:
    table = _PAGE.read_text().partition("## Table formats")[2].partition("\n## ")[0]
    rows = [[cell.strip("` ") for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]

    def package(spark: str, kind: str) -> str:
        found = SETS.get(f"{kind}-spark-{spark}")
        return "none yet" if found is None else ":".join(_parts(found.artifacts[0]))

    assert rows[2:] == [[spark, package(spark, "delta"), package(spark, "iceberg")] for spark in FOR_SPARK]


def _parts(artifact: Artifact) -> tuple[str, str, str]:
    return artifact.group, artifact.name, artifact.version


@pytest.mark.parametrize("spark", FOR_SPARK)
def test_each_spark_has_a_set_of_each_kind_of_its_scala(spark: str) -> None:
    (avro,) = SETS[f"avro-spark-{spark}"].artifacts
    assert avro.name == f"spark-avro_{FOR_SPARK[spark].scala}"
    assert SETS[f"s3a-spark-{spark}"].artifacts[0].version == FOR_SPARK[spark].hadoop


@pytest.mark.parametrize(
    ("name", "driver"),
    [("postgresql", "org.postgresql.Driver"), ("mariadb", "org.mariadb.jdbc.Driver"), ("sqlite", "org.sqlite.JDBC")],
)
def test_jdbc_driver_is_fetched(name: str, driver: str) -> None:
    (jar,) = fetch(name).glob("*.jar")

    with zipfile.ZipFile(jar) as archive:
        assert driver in archive.read("META-INF/services/java.sql.Driver").decode().split()


def test_jars_are_those_of_the_installed_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"pyspark": "3.5.1"}.__getitem__)
    monkeypatch.setattr(jars, "fetch", Path)

    assert fetch_for_spark("connect") == Path("connect-spark-3.5")


def test_spark_that_is_in_no_row_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"pyspark": "9.1.0"}.__getitem__)

    with pytest.raises(KeyError, match=r"no jar set 's3a-spark-9\.1'"):
        fetch_for_spark("s3a")
