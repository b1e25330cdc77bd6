"""Endpoints at which whoever sits in between reads and changes what is sent: refused before anything is."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.s3.client import INSECURE_VARIABLE, S3Clients
from airflow_bookmarks.files.s3.settings import S3Settings
from airflow_bookmarks.plugin.connection import PageHook
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.store.uri import StoreAddress

OFF = "http://dynamo.example:8000"
S3 = {"spark.hadoop.fs.s3a.endpoint": "http://minio.example:9000", "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1"}

pytestmark = pytest.mark.usefixtures("aws_environment")


@pytest.mark.parametrize("host", ["dynamo.example:8000", "10.0.0.7", "127.0.0.1.example.com", "[2001:db8::1]:8000"])
def test_table_without_tls_on_another_machine_is_refused(host: str) -> None:
    with pytest.raises(OptionError, match=r"without TLS .* Nothing was sent\..*insecure=true"):
        open_store(f"dynamodb://bookmarks?region=eu-west-1&endpoint=http://{host}")


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"])
def test_table_without_tls_is_refused_also_where_the_environment_names_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, OFF)
    with pytest.raises(OptionError, match="without TLS"):
        open_store("dynamodb://bookmarks?region=eu-west-1")


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000", "https://dynamo.example", None],
)
def test_table_with_tls_or_on_loopback_needs_no_word(endpoint: str | None) -> None:
    given = "" if endpoint is None else f"&endpoint={endpoint}"
    open_store(f"dynamodb://bookmarks?region=eu-west-1{given}").table.close()


def test_word_for_a_table_without_tls_travels_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"dynamodb://bookmarks?region=eu-west-1&endpoint={OFF}&insecure=true"
    assert str(StoreAddress.parse(uri)) == uri
    open_store(uri).table.close()
    fields = f'{{"conn_type": "bookmarks", "extra": {{"store": "{uri}"}}}}'
    monkeypatch.setenv("AIRFLOW_CONN_BOOKMARKS_DEFAULT", fields)
    PageHook("bookmarks_default").open_store().table.close()


def test_bucket_without_tls_on_another_machine_is_refused() -> None:
    with pytest.raises(OptionError, match=r"without TLS .* Nothing was sent\..*spark\.bookmarks\.s3\.insecure"):
        S3Clients(S3Settings.of_spark_conf(S3)).of("lake")


def test_bucket_without_tls_is_refused_also_where_the_environment_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio.example:9000")
    with pytest.raises(OptionError, match="without TLS"):
        S3Clients(S3Settings()).of("lake")
    monkeypatch.setenv(INSECURE_VARIABLE, "true")
    S3Clients(S3Settings()).of("lake").close()


@pytest.mark.parametrize(
    "word",
    [
        {"spark.bookmarks.s3.insecure": "true"},
        {"spark.bookmarks.s3.bucket.lake.insecure": "true"},
        {"spark.hadoop.fs.s3a.connection.ssl.enabled": "false"},
        {"spark.bookmarks.s3.endpoint": "http://127.0.0.1:9000"},
        {"spark.bookmarks.s3.endpoint": "https://minio.example:9000"},
    ],
)
def test_bucket_that_somebody_has_a_word_for_is_reached(word: dict[str, str]) -> None:
    S3Clients(S3Settings.of_spark_conf(S3 | word)).of("lake").close()
