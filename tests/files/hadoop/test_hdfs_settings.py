"""How HDFS is reached, from Hadoop's configuration and from the Spark conf."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.hadoop.hdfs_settings import Address, HdfsSettings

HA = {
    "fs.defaultFS": "hdfs://lake",
    "dfs.nameservices": "lake",
    "dfs.ha.namenodes.lake": "nn1, nn2",
    "dfs.namenode.http-address.lake.nn1": "one.example:9870",
    "dfs.namenode.http-address.lake.nn2": "two.example:50070",
}


def settings(properties: Mapping[str, str]) -> HdfsSettings:
    return HdfsSettings(tuple(properties.items()))


def write_conf(folder: Path, **files: Mapping[str, str]) -> None:
    for name, properties in files.items():
        inside = "".join(f"<property><name>{k}</name><value> {v} </value></property>" for k, v in properties.items())
        (folder / f"{name}-site.xml").write_text(f"<configuration>{inside}</configuration>")


def test_name_node_answers_on_hadoops_port_where_nothing_is_said() -> None:
    assert HdfsSettings().addresses("names:8020") == (Address("names", 9870),)


def test_name_node_of_the_configuration_answers_where_that_says() -> None:
    found = settings({"fs.defaultFS": "hdfs://names:8020", "dfs.namenode.http-address": "names.example:50070"})

    assert found.addresses("names") == (Address("names.example", 50070),)
    assert found.addresses("others") == (Address("others", 9870),)  # it is said of another one


def test_address_of_all_interfaces_is_that_of_the_name_node() -> None:
    found = settings({"fs.defaultFS": "hdfs://names", "dfs.namenode.http-address": "0.0.0.0:9999"})

    assert found.addresses("names") == (Address("names", 9999),)


def test_name_service_is_its_name_nodes() -> None:
    assert settings(HA).addresses("lake") == (Address("one.example", 9870), Address("two.example", 50070))
    assert settings(HA).default_authority == "lake"


def test_tls_is_used_where_hadoop_has_nothing_else() -> None:
    found = settings({**HA, "dfs.http.policy": "HTTPS_ONLY", "dfs.namenode.https-address.lake.nn1": "one.example:9443"})

    assert found.addresses("lake") == (Address("one.example", 9443, True), Address("lake.nn2", 9871, True))


def test_spark_conf_wins_over_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_conf(tmp_path, core={"fs.defaultFS": "hdfs://lake"}, hdfs=HA)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    found = HdfsSettings.of_spark_conf({"spark.hadoop.dfs.namenode.http-address.lake.nn1": "three.example:1"})

    assert HdfsSettings.of_environment().addresses("lake")[0] == Address("one.example", 9870)
    assert found.addresses("lake")[0] == Address("three.example", 1)


def test_named_addresses_win_over_all() -> None:
    found = HdfsSettings.of_spark_conf({"spark.bookmarks.hdfs.http": "gateway:14000, other"})

    assert found.addresses("names") == (Address("gateway", 14000), Address("other", 9870))


def test_configuration_is_found_below_hadoops_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "etc" / "hadoop"
    folder.mkdir(parents=True)
    write_conf(folder, core={"fs.defaultFS": "hdfs://lake", "hadoop.security.authentication": "kerberos"})
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))

    found = HdfsSettings.of_environment()

    assert (found.default_authority, found.is_kerberos) == ("lake", True)


def test_user_is_the_one_that_hadoops_client_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")

    assert HdfsSettings().user == "etl"
    assert HdfsSettings.of_spark_conf({"spark.bookmarks.hdfs.user": "other"}).user == "other"


def test_configuration_that_is_no_xml_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    with pytest.raises(OptionError, match=r"hdfs-site\.xml.*can't be read.*Nothing was read or changed"):
        HdfsSettings.of_environment()


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"spark.bookmarks.hdfs.htpt": "a:1"}, r"unknown setting spark\.bookmarks\.hdfs\.htpt; known.*http, user"),
        ({"spark.bookmarks.hdfs.http": "a:b"}, r"'a:b' is no address"),
        ({"spark.bookmarks.hdfs.http": ":9870"}, r"':9870' is no address"),
    ],
)
def test_setting_that_is_none_is_refused(conf: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        HdfsSettings.of_spark_conf(conf)
