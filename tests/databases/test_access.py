"""A process without Airflow finds logins where its settings say, or in its environment."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.core.errors import DatabaseError, OptionError
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin

CRM = DatabaseAddress.parse("conn:crm")
SETTING = "spark.bookmarks.access.crm"
URI = "postgres://etl:hunter2@db/crm"
LOGIN = DatabaseLogin("postgresql", "db", 5432, "crm", "etl", "hunter2")
REGION = "eu-west-1"


@pytest.fixture(autouse=True)
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what whoever runs the tests has set."""
    monkeypatch.delenv("AIRFLOW_CONN_CRM", raising=False)


@pytest.fixture
def secrets_manager(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process reach the secrets of moto."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


def keep(moto_url: str, aws_session: boto3.session.Session, name: str, **value: str | bytes) -> str:
    """Put a secret into moto; return its ARN."""
    client = aws_session.client("secretsmanager", region_name=REGION, endpoint_url=moto_url)
    arn: str = client.create_secret(Name=name, **value)["ARN"]  # type: ignore[arg-type]
    client.close()
    return arn


@pytest.mark.parametrize(
    "text",
    [
        URI,
        json.dumps({"conn_type": "postgres", "host": "db", "schema": "crm", "login": "etl", "password": "hunter2"}),
    ],
    ids=["uri", "json"],
)
def test_variable_of_airflow_is_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CRM", text)

    assert EnvironmentAccess().login(CRM) == LOGIN


def test_setting_names_another_variable_which_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CRM", "postgres://other@db/crm")
    monkeypatch.setenv("CRM_LOGIN", URI)

    assert EnvironmentAccess({SETTING: "env:CRM_LOGIN"}).login(CRM) == LOGIN


@pytest.mark.parametrize("form", ["file:{}", "file://{}"])
def test_setting_names_a_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "crm"
    path.write_text(f"{URI}\n")

    assert EnvironmentAccess({SETTING: form.format(path)}).login(CRM) == LOGIN


def test_setting_names_a_secret_of_rds(
    secrets_manager: None, moto_url: str, aws_session: boto3.session.Session
) -> None:
    value = {"engine": "postgres", "host": "db", "port": 5432, "username": "etl", "password": "hunter2"}
    arn = keep(moto_url, aws_session, "prod/rds", SecretString=json.dumps({**value, "dbname": "crm"}))

    assert EnvironmentAccess({SETTING: "aws-secret:prod/rds"}).login(CRM) == LOGIN
    assert EnvironmentAccess({SETTING: f"aws-secret:{arn}"}).login(CRM) == LOGIN


def test_arn_says_the_region(
    secrets_manager: None, moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = keep(moto_url, aws_session, "prod/elsewhere", SecretString=URI)
    monkeypatch.delenv("AWS_DEFAULT_REGION")

    assert EnvironmentAccess({SETTING: f"aws-secret:{arn}"}).login(CRM) == LOGIN


def test_secret_that_is_missing_is_an_error_of_the_database(secrets_manager: None) -> None:
    with pytest.raises(DatabaseError, match=r"'prod/none', which AWS Secrets Manager does not give: .*Not ?Found") as e:
        EnvironmentAccess({SETTING: "aws-secret:prod/none"}).login(CRM)

    assert "secretsmanager:GetSecretValue" in str(e.value)


def test_secret_of_bytes_is_refused(secrets_manager: None, moto_url: str, aws_session: boto3.session.Session) -> None:
    keep(moto_url, aws_session, "prod/bytes", SecretBinary=b"hunter2")

    with pytest.raises(OptionError, match="holds bytes and no text"):
        EnvironmentAccess({SETTING: "aws-secret:prod/bytes"}).login(CRM)


def test_missing_login_says_where_it_was_looked_for() -> None:
    with pytest.raises(OptionError, match="no login is found for conn:crm") as raised:
        EnvironmentAccess({"spark.bookmarks.access.other": "env:OTHER"}).login(CRM)

    assert "AIRFLOW_CONN_CRM" in str(raised.value)
    assert SETTING in str(raised.value)
    assert "Nothing was read or changed" in str(raised.value)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("env:NO_SUCH_VARIABLE", "the variable 'NO_SUCH_VARIABLE', which is not set"),
        ("file:/no/such/file", "'/no/such/file', which can't be read: No such file"),
        ("file:crm", "no absolute path"),
        ("postgres://etl:hunter2@db/crm", "begins with none of 'env:', 'file:' and 'aws-secret:'"),
    ],
)
def test_what_a_setting_names_and_is_not_there_is_no_reason_to_look_elsewhere(
    place: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CRM", URI)

    with pytest.raises(OptionError, match=why) as raised:
        EnvironmentAccess({SETTING: place}).login(CRM)

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_unreadable_login_names_its_place_and_not_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CRM", "{hunter2")

    with pytest.raises(OptionError, match="in the variable AIRFLOW_CONN_CRM, is neither") as raised:
        EnvironmentAccess().login(CRM)

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_url_takes_no_login() -> None:
    login = EnvironmentAccess().login(DatabaseAddress.parse("jdbc:sqlite:/crm.db"))

    assert login == DatabaseLogin("sqlite", None, None, "/crm.db")


def test_access_settings_are_none_of_a_run() -> None:
    assert Settings.from_conf({SETTING: "env:CRM_LOGIN", "spark.bookmarks.job": "crm"}) == Settings(job="crm")
