"""What a login says about TLS holds for Spark and for Python, or is refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from airflow_bookmarks.core.database.dialect import DialectName
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.parameters import client_arguments, jdbc_parameters


@pytest.mark.parametrize(
    ("given", "jdbc", "client"),
    [
        ({}, {}, {}),
        ({"sslmode": "require"}, {"sslmode": "require"}, {"sslmode": "require"}),
        ({"ssl": "true"}, {"ssl": "true"}, {"sslmode": "verify-full"}),
        ({"ssl": "true", "sslmode": "require"}, {"ssl": "true", "sslmode": "require"}, {"sslmode": "require"}),
        ({"ApplicationName": "crm"}, {"ApplicationName": "crm"}, {"application_name": "crm"}),
        ({"application_name": "crm"}, {"ApplicationName": "crm"}, {"application_name": "crm"}),
        ({"connectTimeout": "3"}, {"connectTimeout": "3"}, {"connect_timeout": 3}),
        ({"connect_timeout": "3"}, {"connectTimeout": "3"}, {"connect_timeout": 3}),
        ({"keepalives_idle": "30"}, {}, {"keepalives_idle": "30"}),
        ({"currentSchema": "a b"}, {"currentSchema": "a b"}, {"options": "-c search_path=a\\ b"}),
        ({"defaultRowFetchSize": "9"}, {"defaultRowFetchSize": "9"}, {}),
    ],
)
def test_parameters_of_postgresql_have_two_names(
    given: dict[str, str], jdbc: dict[str, str], client: dict[str, object]
) -> None:
    assert jdbc_parameters("postgresql", given) == jdbc
    assert client_arguments("postgresql", given) == {"connect_timeout": 10} | client


@pytest.mark.parametrize(
    ("given", "mariadb", "mysql"),
    [
        ({}, {}, {}),
        ({"sslMode": "verify-full"}, {"sslMode": "verify-full"}, {"sslMode": "VERIFY_IDENTITY"}),
        ({"ssl_mode": "VERIFY_CA"}, {"sslMode": "verify-ca"}, {"sslMode": "VERIFY_CA"}),
        ({"sslMode": "REQUIRED"}, {"sslMode": "trust"}, {"sslMode": "REQUIRED"}),
        ({"sslMode": "preferred"}, {}, {"sslMode": "PREFERRED"}),
        ({"connect_timeout": "3"}, {"connectTimeout": "3000"}, {"connectTimeout": "3000"}),
        ({"connectTimeout": "3000"}, {"connectTimeout": "3000"}, {"connectTimeout": "3000"}),
    ],
)
def test_jdbc_drivers_of_mysql_and_mariadb_spell_modes_differently(
    given: dict[str, str], mariadb: dict[str, str], mysql: dict[str, str]
) -> None:
    assert jdbc_parameters("mariadb", given) == mariadb
    assert jdbc_parameters("mysql", given) == mysql


@pytest.mark.parametrize(
    ("mode", "checks_host", "verifies"),
    [
        ("trust", False, ssl.CERT_NONE),
        ("verify-ca", False, ssl.CERT_REQUIRED),
        ("verify-full", True, ssl.CERT_REQUIRED),
    ],
)
def test_pymysql_verifies_what_the_mode_says(mode: str, checks_host: bool, verifies: ssl.VerifyMode) -> None:
    context = client_arguments("mariadb", {"sslMode": mode})["ssl"]

    assert (context.check_hostname, context.verify_mode) == (checks_host, verifies)


def test_pymysql_does_not_encrypt_where_the_mode_says_so() -> None:
    assert client_arguments("mysql", {"sslMode": "DISABLED"})["ssl_disabled"] is True
    assert "ssl" not in client_arguments("mysql", {})


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("postgresql", "sslfactory"),
        ("postgresql", "sslcrl"),
        ("mariadb", "useSsl"),
        ("mysql", "trustServerCertificate"),
    ],
)
def test_parameter_about_tls_that_one_side_does_not_know_is_refused(dialect: DialectName, name: str) -> None:
    with pytest.raises(OptionError, match=f"{name!r}, which is about TLS"):
        client_arguments(dialect, {name: "true"})


def test_key_store_is_for_jdbc_where_python_has_a_file() -> None:
    given = {"trustCertificateKeyStoreUrl": "file:/ca.jks", "sslMode": "VERIFY_CA"}
    with pytest.raises(OptionError, match="'trustCertificateKeyStoreUrl', which is about TLS"):
        client_arguments("mysql", given)

    assert jdbc_parameters("mysql", given) == given
    assert jdbc_parameters("mysql", {**given, "ssl_ca": "/ca.pem"}) == given


@pytest.mark.parametrize(("dialect", "name"), [("mysql", "ssl_ca"), ("mariadb", "ssl_cert")])
def test_certificate_that_the_jdbc_driver_cannot_read_is_refused(dialect: DialectName, name: str) -> None:
    with pytest.raises(OptionError, match="Java key stores besides"):
        jdbc_parameters(dialect, {name: "/a.pem"})


def test_authority_is_verified_without_a_mode(tmp_path: Path) -> None:
    absent = tmp_path / "absent.pem"

    assert jdbc_parameters("mariadb", {"ssl_ca": "/ca.pem"}) == {"sslMode": "verify-full", "serverSslCert": "/ca.pem"}
    with pytest.raises(OptionError, match="certificates of the login can't be read"):
        client_arguments("mariadb", {"serverSslCert": str(absent)})


@pytest.mark.parametrize("given", [{"sslMode": "maybe"}, {"connectTimeout": "soon"}])
def test_wrong_value_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        client_arguments("mysql", given)
