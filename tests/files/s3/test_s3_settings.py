"""How S3 is reached, as a Spark conf says it."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.files.s3.client import clients_of
from airflow_bookmarks.files.s3.settings import S3Access, S3Settings

S3A = "spark.hadoop.fs.s3a."
OURS = "spark.bookmarks.s3."
PROVIDER = f"{S3A}aws.credentials.provider"


def of(**values: str) -> S3Settings:
    return S3Settings.of_spark_conf(values)


def test_settings_of_s3a_are_taken_over() -> None:
    settings = S3Settings.of_spark_conf(
        {
            "spark.master": "local",
            f"{S3A}endpoint": "http://127.0.0.1:9000",
            f"{S3A}endpoint.region": "eu-west-1",
            f"{S3A}path.style.access": "true",
            f"{S3A}access.key": "key",
            f"{S3A}secret.key": "secret",
            f"{S3A}session.token": "token",
            f"{S3A}threads.max": "64",
        }
    )

    expected = S3Access("http://127.0.0.1:9000", "eu-west-1", True, None, "key", "secret", "token")
    assert settings == S3Settings(expected)
    assert settings.of("lake") == expected


def test_own_settings_win_over_those_of_s3a_and_of_the_session() -> None:
    conf = {f"{OURS}endpoint": "http://c", "fs.s3a.endpoint": "http://b", f"{S3A}endpoint": "http://a"}
    assert S3Settings.of_spark_conf(conf).of("lake").url == "http://c"

    del conf[f"{OURS}endpoint"]
    assert S3Settings.of_spark_conf(conf).of("lake").url == "http://b"


def test_bucket_has_settings_of_its_own() -> None:
    settings = S3Settings.of_spark_conf(
        {
            f"{S3A}endpoint": "http://all",
            f"{S3A}access.key": "key",
            f"{S3A}secret.key": "secret",
            f"{S3A}session.token": "token",
            f"{S3A}bucket.my.lake.endpoint": "http://lake",
            f"{S3A}bucket.my.lake.endpoint.region": "eu-west-1",
            f"{OURS}bucket.my.lake.access.key": "other",
            f"{OURS}bucket.my.lake.secret.key": "others",
        }
    )

    lake, other = settings.of("my.lake"), settings.of("my")
    assert (lake.url, lake.region, lake.access_key, lake.session_token) == ("http://lake", "eu-west-1", "other", None)
    assert (other.url, other.region, other.access_key, other.session_token) == ("http://all", None, "key", "token")


@pytest.mark.parametrize(
    ("endpoint", "ssl", "url", "region"),
    [
        ("minio:9000", "false", "http://minio:9000", None),
        ("minio:9000", "true", "https://minio:9000", None),
        ("s3.eu-central-1.amazonaws.com", "true", "https://s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("https://s3.us-gov-west-1.amazonaws.com", "true", "https://s3.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("s3.amazonaws.com", "true", None, None),  # that of all regions: boto3 finds the bucket's
    ],
)
def test_endpoint_is_read_as_s3a_reads_it(endpoint: str, ssl: str, url: str | None, region: str | None) -> None:
    access = S3Settings.of_spark_conf({f"{S3A}endpoint": endpoint, f"{S3A}connection.ssl.enabled": ssl}).of("lake")

    assert (access.url, access.signing_region) == (url, region)


def test_nothing_said_leaves_it_to_boto3() -> None:
    assert S3Settings.of_spark_conf({f"{S3A}endpoint": "", "spark.app.name": "x"}) == S3Settings()
    assert (S3Access().url, S3Access().signing_region) == (None, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("endpiont", "http://a"),
        ("bucket.lake.endpiont", "http://a"),
        ("bucket.lake.scheme", "s3"),
        ("path.style.access", "yes"),
        ("scheme", "gs"),
        ("connections", "0"),
        ("connections", "many"),
    ],
)
def test_misspelt_setting_is_an_error(key: str, value: str) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        of(**{f"{OURS}{key}": value})


def test_settings_of_s3_are_none_of_the_run() -> None:
    assert Settings.from_conf({f"{OURS}endpoint": "http://a"}) == Settings()


def test_half_given_credentials_are_an_error_when_they_are_needed() -> None:
    settings = of(**{f"{S3A}access.key": "key"})

    with pytest.raises(OptionError, match="only one is given"):
        settings.of("lake").check()


def test_credentials_that_only_spark_can_find_are_an_error_that_says_so() -> None:
    provider = "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"

    with pytest.raises(OptionError, match=r"AssumedRole.*spark\.bookmarks\.s3\.access\.key"):
        of(**{PROVIDER: provider}).of("lake").check()
    of(**{PROVIDER: provider, f"{OURS}access.key": "key", f"{OURS}secret.key": "secret"}).of("lake").check()
    of(**{PROVIDER: provider, f"{OURS}aws.credentials.provider": "Default"}).of("lake").check()


@pytest.mark.parametrize(
    "provider",
    [
        "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,org.apache.hadoop.fs.s3a.auth.IAMInstanceProvider",
        "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
        "com.amazonaws.auth.WebIdentityTokenCredentialsProvider",
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
    ],
)
def test_credentials_that_boto3_finds_as_well_are_left_to_it(provider: str) -> None:
    of(**{PROVIDER: provider}).of("lake").check()


def test_anonymous_reads_stay_anonymous() -> None:
    assert of(**{PROVIDER: "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}).of("lake").is_anonymous


def test_secrets_are_not_shown() -> None:
    settings = of(**{f"{S3A}access.key": "AKIA", f"{S3A}secret.key": "hush", f"{S3A}session.token": "token"})

    assert not any(secret in repr(settings) for secret in ("AKIA", "hush", "token'"))


def test_endpoint_of_the_environment_is_the_present_one(aws_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for endpoint in ("http://127.0.0.1:9001", "http://127.0.0.1:9002", "http://127.0.0.1:9001"):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        found.append(clients_of(S3Settings(S3Access(region="us-east-1"))).of("lake"))

    assert [client.meta.endpoint_url for client in found] == [f"http://127.0.0.1:{port}" for port in (9001, 9002, 9001)]
    assert found[0] is found[2]  # a client takes long to make
