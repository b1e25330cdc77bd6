"""Connections to databases: by the name that a script gives, or by the URL in its options.

A name is looked for among the connections of this process (`spark.bookmarks.access.<name>`, AIRFLOW_CONN_<NAME>), then
in the Data Catalog. What is found, and what options say, becomes a login of this process, in memory only; state and
messages know it as `conn:<name>`, without user and password.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_bookmarks.core.errors import DatabaseError, OptionError
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.databases.access import ACCESS_PREFIX, EnvironmentAccess, ProcessAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.glue.catalogs.data_catalog import DataCatalog
from airflow_bookmarks.glue.errors import CatalogError, EntityNotFoundError
from airflow_bookmarks.spark.features import session_conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.glue.run import GlueRun

log = logging.getLogger(__name__)

_OTHER_SIGN = re.compile(r"[^A-Za-z0-9_.-]")
_HASH_DIGITS = 8
_ORACLE = re.compile(r"^jdbc:oracle:thin:(?://)?@(?://)?(?=[^/@:]+(?::\d+)?/)", re.IGNORECASE)
_SQLSERVER_DATABASE = re.compile(r"(?<=;)database(?==)", re.IGNORECASE)
# What URLs in scripts and connections may have of a login, by the names of drivers.
_USER, _PASSWORD = re.compile(r"[?&;]user(?:name)?=([^&;]*)", re.I), re.compile(r"[?&;]password=([^&;]*)", re.I)
# By the type of a connection that has no URL: how its URL begins, and its port.
_TYPED = {
    "MYSQL": ("jdbc:mysql:", 3306),
    "POSTGRESQL": ("jdbc:postgresql:", 5432),
    "SQLSERVER": ("jdbc:sqlserver:", 1433),
    "ORACLE": ("jdbc:oracle:thin:@", 1521),
    "REDSHIFT": ("jdbc:redshift:", 5439),
}


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to a database, with its secrets. `repr()` shows no password.

    Args:
        conn_id: the name by which it is an address: `conn:<conn_id>`.
        login: how the database is entered.
        properties: of the connection in the Data Catalog; empty for another one.
    """

    conn_id: str
    login: DatabaseLogin
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """The address for reads, writes and state."""
        return f"conn:{self.conn_id}"


def connection_named(
    run: GlueRun, name: str, *, database: str | None = None, catalog_id: str | None = None
) -> Connection:
    """Return a connection by its name, known to this process from now on.

    Args:
        run: the current run, whose job reaches the database by it.
        name: of the connection.
        database: replaces the database of its URL, as `connection_options={"database": ...}` does.
        catalog_id: the account whose Data Catalog has it; None: that of the credentials.

    Raises:
        EntityNotFoundError: neither place has it; the message names both.
        OptionError: it is no connection to a database that is known here, or incomplete.
        CatalogError, DatabaseError: the catalog, or the place of its secret, refuses.

    Example:
        connection = connection_named(run, "shop", database="archive")
        job.write(frame, "orders").jdbc(connection.address, "orders")
    """
    conn_id, properties = _conn_id(name), dict[str, str]()
    login = _of_process(run, conn_id)
    if login is None:
        told = _of_catalog(name, conn_id, catalog_id)
        properties = dict(told.get("ConnectionProperties") or {})
        login = _login_of(name, told, properties)
    if database and database != login.database:
        login, conn_id = replace(login, database=database), _conn_id(f"{conn_id}.{database}")
    return _known(run, Connection(conn_id, login, properties))


def connection_of_options(run: GlueRun, options: Mapping[str, Any], call: str) -> Connection:
    """Return the connection that `url`, `user` and `password` in a script's options are, or `connectionName`.

    Raises:
        OptionError: there is no URL, or none of a database that is known here. The message repeats no secret.
    """
    name = options.get("connectionName")
    database = str(options["database"]) if options.get("database") else None
    if name:
        catalog_id = options.get("catalogId")
        return connection_named(run, str(name), database=database, catalog_id=catalog_id)
    url = options.get("url")
    if not isinstance(url, str) or not url:
        raise OptionError(
            f"{call}: connection_options have neither 'url' nor 'connectionName'. Nothing was read or changed. Give a "
            "JDBC URL, or the name of a connection."
        )
    user, password = options.get("user", options.get("username")), options.get("password")
    login = login_of_url(url, user, password)
    if database and database != login.database:
        login = replace(login, database=database)
    return _known(run, Connection(_conn_id(re.sub(r"^jdbc:|/+|thin:@", ".", login.name).strip(".")), login))


def login_of_url(url: str, user: str | None = None, password: str | None = None) -> DatabaseLogin:
    """Return the login of a JDBC URL as Glue writes them, which may have a user and a password in it.

    Raises:
        OptionError: it is none of a known database.

    Example:
        >>> login_of_url("jdbc:sqlserver://db:1433;database=shop", "etl").jdbc_url
        'jdbc:sqlserver://db:1433;databaseName=shop'
    """
    found_user, found_password = _USER.search(url), _PASSWORD.search(url)
    plain = _PASSWORD.sub(_separator, _USER.sub(_separator, url))
    plain = re.sub(r"([?&;])[?&;]+", r"\1", plain).rstrip("?&;")
    plain = _SQLSERVER_DATABASE.sub("databaseName", _ORACLE.sub("jdbc:oracle:thin:@//", plain))
    login = DatabaseLogin.of_address(DatabaseAddress.parse(plain))
    return replace(
        login,
        user=user or (found_user[1] if found_user else None),
        password=password or (found_password[1] if found_password else None),
    )


def _separator(found: re.Match[str]) -> str:
    return found[0][0]


def extract_jdbc_conf(run: GlueRun, connection_name: str, catalog_id: str | None = None) -> dict[str, Any]:
    """Return what a script needs to connect by itself: `user`, `password`, `vendor`, `url` without the database, ...

    Raises:
        EntityNotFoundError, OptionError, CatalogError, DatabaseError: as `connection_named`.
    """
    connection = connection_named(run, connection_name, catalog_id=catalog_id)
    login, properties = connection.login, connection.properties
    full = properties.get("JDBC_CONNECTION_URL") or login.jdbc_url
    vendor = "mysql" if login.dialect == "mariadb" else login.dialect
    return {
        "user": login.user or "",
        "password": login.password or "",
        "vendor": vendor,
        "url": _without_database(full),
        "fullUrl": full,
        "enforceSSL": properties.get("JDBC_ENFORCE_SSL", "false"),
        "customJDBCCert": properties.get("CUSTOM_JDBC_CERT", ""),
        "skipCustomJDBCCertValidation": properties.get("SKIP_CUSTOM_JDBC_CERT_VALIDATION", "false"),
        "customJDBCCertString": properties.get("CUSTOM_JDBC_CERT_STRING", ""),
    }


def _without_database(url: str) -> str:
    """Return a URL without its database and parameters.

    Example:
        >>> _without_database("jdbc:postgresql://db:5432/shop?ssl=true"), _without_database("jdbc:sqlserver://db;databaseName=a")
        ('jdbc:postgresql://db:5432', 'jdbc:sqlserver://db')
    """
    before, sign, after = url.partition("//")
    return f"{before}{sign}{re.split('[/;?]', after, maxsplit=1)[0]}" if sign else url


# ---- where it is found


def access_of(run: GlueRun) -> ProcessAccess:
    """Return what knows the logins of this process, also for the job of the run."""
    if run.job is not None:
        return _widened(run.job.store)
    conf = session_conf(run.spark)
    settings = {key: value for key, value in conf.items() if key.startswith(ACCESS_PREFIX)}
    return ProcessAccess(EnvironmentAccess(settings))


@dataclass(frozen=True, slots=True)
class CatalogAccess:
    """Finds logins by what an earlier run has called them: `conn:<connection>` and `conn:<connection>.<database>`.

    So a run that recovers what a dead driver has committed reaches its database, before the script has named it.

    Args:
        process: knows the connections of this process.
    """

    process: DatabaseAccess

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        """Return the login for an address; see `DatabaseAccess.login`."""
        conn_id = address.conn_id or ""
        base, _, database = conn_id.rpartition(".")
        if base:
            try:
                return replace(self.process.login(DatabaseAddress(conn_id=base)), database=database)
            except OptionError:
                log.debug("conn:%s is none of this process", base)
        for name, of_database in ((conn_id, None), (base, database)):
            try:
                told = DataCatalog().connection(name) if name else None
            except EntityNotFoundError:
                continue
            except CatalogError as error:
                raise OptionError(
                    f"no login is found for {address}: neither among the connections of this process nor in the Data "
                    f"Catalog: {error}"
                ) from error
            if told is not None:
                login = _login_of(name, told, dict(told.get("ConnectionProperties") or {}))
                return login if of_database is None else replace(login, database=of_database)
        raise OptionError(
            f"no login is found for {address}: neither in this process ({ACCESS_PREFIX}{conn_id}, "
            f"AIRFLOW_CONN_{conn_id.upper()}) nor in the Data Catalog. Nothing was read or changed. If a script has "
            "given its URL and password as options, set that variable for one run, so that it can finish what the "
            "run before has committed."
        )


def reach_catalog(store: Any) -> None:
    """Let a store find logins in the Data Catalog too, where the process has none."""
    _widened(store)


def _widened(store: Any) -> ProcessAccess:
    if not isinstance(store.databases, ProcessAccess):
        store.databases = ProcessAccess(store.databases, CatalogAccess(store.databases))
    access: ProcessAccess = store.databases
    return access


def _known(run: GlueRun, connection: Connection) -> Connection:
    access_of(run).add(connection.conn_id, connection.login)
    return connection


def _of_process(run: GlueRun, conn_id: str) -> DatabaseLogin | None:
    """Return the login that the settings or variables of this process name; None where they name none."""
    beyond: DatabaseAccess = access_of(run).beyond
    conf = session_conf(run.spark)
    if (
        not conf.get(f"{ACCESS_PREFIX}{conn_id}")
        and not _has_variable(conn_id)
        and isinstance(beyond, EnvironmentAccess)
    ):
        return None
    try:
        return beyond.login(DatabaseAddress(conn_id=conn_id))
    except OptionError:
        if isinstance(beyond, EnvironmentAccess):
            raise  # what is named and can't be read is an error: another login might reach another database
        return None


def _has_variable(conn_id: str) -> bool:
    import os

    return bool(os.environ.get(f"AIRFLOW_CONN_{conn_id.upper()}"))


def _of_catalog(name: str, conn_id: str, catalog_id: str | None) -> Mapping[str, Any]:
    process = f"the connections of this process ({ACCESS_PREFIX}{conn_id}, AIRFLOW_CONN_{conn_id.upper()})"
    try:
        return DataCatalog(catalog_id=catalog_id).connection(name)
    except EntityNotFoundError as error:
        raise EntityNotFoundError(f"{error} It is not among {process} either.") from error
    except CatalogError as error:
        raise CatalogError(f"{error} It is not among {process} either.") from error


def _login_of(name: str, told: Mapping[str, Any], properties: Mapping[str, str]) -> DatabaseLogin:
    kind = str(told.get("ConnectionType", ""))
    url = properties.get("JDBC_CONNECTION_URL") or _typed_url(kind, properties)
    if not url:
        raise OptionError(
            f"connection {name!r} is of the type {kind!r}, and not JDBC, or has no URL. Nothing was read or changed. "
            f"Known are JDBC and {', '.join(_TYPED)}."
        )
    user, password = properties.get("USERNAME"), properties.get("PASSWORD")
    secret = properties.get("SECRET_ID") or (told.get("AuthenticationConfiguration") or {}).get("SecretArn")
    if secret:
        user, password = _of_secret(name, secret)
    return login_of_url(url, user, password)


def _typed_url(kind: str, properties: Mapping[str, str]) -> str | None:
    host, database = properties.get("HOST"), properties.get("DATABASE")
    if kind.upper() not in _TYPED or not host or not database:
        return None
    beginning, port = _TYPED[kind.upper()]
    place = f"{beginning}//{host}:{properties.get('PORT') or port}"
    return f"{place};databaseName={database}" if kind.upper() == "SQLSERVER" else f"{place}/{database}"


def _of_secret(name: str, secret: str) -> tuple[str | None, str | None]:
    import boto3.session  # takes half a second
    from botocore.exceptions import BotoCoreError, ClientError

    region = secret.split(":")[3] if secret.startswith("arn:") and secret.count(":") > 5 else None
    try:
        client = boto3.session.Session().client("secretsmanager", region_name=region)
        found = json.loads(client.get_secret_value(SecretId=secret).get("SecretString") or "")
    except (BotoCoreError, ClientError) as error:
        raise DatabaseError(
            f"connection {name!r} names the secret {secret!r}, which AWS Secrets Manager does not give: "
            f"{redacted(str(error))}. Nothing was read or changed. Correct the name, or give this process the right "
            "secretsmanager:GetSecretValue."
        ) from error
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionError(
            f"connection {name!r} names the secret {secret!r}, which holds no JSON object. Nothing was read or "
            "changed. It has to have username and password."
        )
    user = found.get("username", found.get("user"))
    return None if user is None else str(user), found.get("password")


def _conn_id(name: str) -> str:
    """Return a name that an address can have; of one that is changed, with a hash, so that no two are one.

    Example:
        >>> _conn_id("shop"), _conn_id("my shop")
        ('shop', 'my_shop-45c22e6c')
    """
    plain = _OTHER_SIGN.sub("_", name)[:200]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]}"


def vendor_of(url: str) -> str:
    """Return what a JDBC URL is of: "mysql".

    Example:
        >>> vendor_of("jdbc:mysql://db/shop")
        'mysql'
    """
    return urlsplit(url.removeprefix("jdbc:")).scheme
