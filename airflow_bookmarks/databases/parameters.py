"""Translate the parameters of a login: JDBC drivers and Python's clients call the same thing by different names.

Spark connects by JDBC, and plans and publishes connect by Python; both have to be as safe as the login says. So a
parameter about TLS that one of them doesn't know is refused, and never ignored. Other parameters that only JDBC drivers
know, such as `defaultRowFetchSize`, are left to them.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database.dialects.quoting import is_mysql
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.database.dialect import DialectName

CONNECT_TIMEOUT_S = 10

# Names of pgjdbc, by those of libpq; other names that both know are the same.
_PGJDBC = {"application_name": "ApplicationName", "channel_binding": "channelBinding", "gssencmode": "gssEncMode"}
_LIBPQ = {jdbc: libpq for libpq, jdbc in _PGJDBC.items()}
_BOTH = frozenset(["sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "options"])
_LIBPQ_ALONE = frozenset(
    ["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"]
)

_ABOUT_TLS = re.compile(r"ssl|tls|trust|keystore|certificate", re.IGNORECASE)
_SECRET = re.compile(r"passw|passphrase|pwd|secret|token|credential", re.IGNORECASE)

# By the spelling of MariaDB's driver without `-`: what MySQL's driver and its command line call the same.
_MODES = {
    "disable": "disable",
    "disabled": "disable",
    "preferred": "preferred",
    "required": "trust",
    "trust": "trust",
    "verifyca": "verify-ca",
    "verifyfull": "verify-full",
    "verifyidentity": "verify-full",
}
_MYSQL_MODES = {
    "disable": "DISABLED",
    "preferred": "PREFERRED",
    "trust": "REQUIRED",
    "verify-ca": "VERIFY_CA",
    "verify-full": "VERIFY_IDENTITY",
}
_MYSQL_OWN = frozenset(["ssl_mode", "sslMode", "ssl_ca", "serverSslCert", "ssl_cert", "ssl_key", "connect_timeout"])

# Extra fields by which Airflow's hooks for SQL Server, Oracle and Redshift choose a client, a service or a mode of it.
_OF_AIRFLOW = frozenset(
    ["service_name", "sid", "dsn", "driver", "mode", "module", "purity", "threaded", "events", "thick_mode", "protocol"]
)


def is_secret(name: str, value: str) -> bool:
    """Say whether a parameter holds a secret, such as the password of a key store."""
    return _SECRET.search(name) is not None or redacted(f"{name}={value}") != f"{name}={value}"


def jdbc_parameters(dialect: DialectName, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters by the names of the JDBC driver, secrets included.

    Raises:
        OptionError: the driver can't do what one of them says about TLS.

    Example:
        >>> jdbc_parameters("postgresql", {"application_name": "crm", "sslmode": "require"})
        {'ApplicationName': 'crm', 'sslmode': 'require'}
    """
    if dialect == "postgresql":
        left = _LIBPQ_ALONE | {"connect_timeout"}
        named = {_PGJDBC.get(name, name): value for name, value in parameters.items() if name not in left}
        return named | _timeout_of_jdbc(parameters, 1)
    if dialect == "sqlite":
        return {}
    if not is_mysql(dialect):
        return {name: value for name, value in parameters.items() if name not in _OF_AIRFLOW}
    kept = {name: value for name, value in parameters.items() if name not in _MYSQL_OWN}
    return kept | _mysql_tls_of_jdbc(dialect, parameters) | _timeout_of_jdbc(parameters, 1000)


def client_arguments(dialect: DialectName, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters as arguments of psycopg or PyMySQL.

    Raises:
        OptionError: the client can't do what one of them says about TLS.

    Example:
        >>> client_arguments("postgresql", {"ApplicationName": "crm", "defaultRowFetchSize": "100"})
        {'connect_timeout': 10, 'application_name': 'crm'}
    """
    if dialect == "postgresql":
        return _of_libpq(parameters)
    if dialect == "sqlite":
        return {}
    timeout = _timeout(parameters, 1000)
    return {"connect_timeout": timeout, "charset": "utf8mb4"} | _mysql_tls_of_client(parameters)


# ---- PostgreSQL


def _of_libpq(parameters: Mapping[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"connect_timeout": _timeout(parameters, 1)}
    for name, value in parameters.items():
        libpq = _LIBPQ.get(name, name)
        if libpq in _PGJDBC or libpq in _BOTH or libpq in _LIBPQ_ALONE:
            arguments[libpq] = value
        elif name == "ssl":
            # pgjdbc verifies host and certificate where only `ssl` is given.
            arguments.setdefault("sslmode", "prefer" if value == "false" else "verify-full")
        elif name == "currentSchema":
            arguments["options"] = f"{parameters.get('options', '')} -c search_path={_escaped(value)}".strip()
        elif _ABOUT_TLS.search(name):
            raise _unknown(name, "sslmode, sslrootcert, sslcert and sslkey")
    if "sslmode" in parameters:
        arguments["sslmode"] = parameters["sslmode"]
    return arguments


def _escaped(value: str) -> str:
    """Return a value as libpq's `options` takes it."""
    return re.sub(r"([\\ ])", r"\\\1", value)


# ---- MySQL and MariaDB


def _mode(parameters: Mapping[str, str]) -> str | None:
    given = parameters.get("sslMode", parameters.get("ssl_mode"))
    if given is None:
        return "verify-full" if _authority(parameters) else None
    mode = _MODES.get(re.sub("[-_]", "", given).lower())
    if mode is None:
        known = ", ".join(sorted(set(_MODES.values())))
        raise OptionError(f"sslMode={given!r}: expected one of {known}. Nothing was read or changed.")
    return mode


def _authority(parameters: Mapping[str, str]) -> str | None:
    return parameters.get("serverSslCert", parameters.get("ssl_ca"))


def _mysql_tls_of_jdbc(dialect: DialectName, parameters: Mapping[str, str]) -> dict[str, str]:
    mode, authority = _mode(parameters), _authority(parameters)
    has_key_store = any("keystore" in name.lower() for name in parameters)
    if not has_key_store and ("ssl_cert" in parameters or (authority and dialect == "mysql")):
        raise OptionError(
            "the login has certificates as PEM files (ssl_ca, ssl_cert), which this JDBC driver can't read. Nothing "
            "was read or changed. Give the same certificates as Java key stores besides, e.g. "
            "trustCertificateKeyStoreUrl for MySQL, or keyStore for MariaDB."
        )
    found: dict[str, str] = {}
    if mode is not None:
        # MariaDB's driver has no "preferred": without a mode it does not encrypt.
        found = {"sslMode": _MYSQL_MODES[mode]} if dialect == "mysql" else {"sslMode": mode}
    if dialect == "mariadb" and mode == "preferred":
        del found["sslMode"]
    if dialect == "mariadb" and authority:
        found["serverSslCert"] = authority
    return found


def _mysql_tls_of_client(parameters: Mapping[str, str]) -> dict[str, Any]:
    mode, authority = _mode(parameters), _authority(parameters)
    for name in parameters:
        # A key store is for JDBC; the same certificates as PEM files are beside it.
        has_own = "keystore" in name.lower() and (authority or "ssl_cert" in parameters)
        if _ABOUT_TLS.search(name) and name not in _MYSQL_OWN and not has_own:
            raise _unknown(name, "sslMode, serverSslCert (or ssl_ca), ssl_cert and ssl_key")
    if mode is None or mode == "preferred":
        return {}
    if mode == "disable":
        return {"ssl_disabled": True}
    return {"ssl": _context(mode, authority, parameters)}


def _context(mode: str, authority: str | None, parameters: Mapping[str, str]) -> ssl.SSLContext:
    # PyMySQL's own context would verify nothing where no authority is named; this one takes those of the machine.
    try:
        context = ssl.create_default_context(cafile=authority)
        if "ssl_cert" in parameters:
            context.load_cert_chain(parameters["ssl_cert"], parameters.get("ssl_key"))
    except OSError as error:
        raise OptionError(
            f"the certificates of the login can't be read ({error}). Nothing was read or changed. Correct "
            "serverSslCert (or ssl_ca), ssl_cert and ssl_key: paths of PEM files on this machine."
        ) from error
    if hasattr(ssl, "VERIFY_X509_STRICT"):
        # Certificates that MySQL makes by itself lack what Python 3.13 asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.check_hostname = mode == "verify-full"
    if mode == "trust":
        context.verify_mode = ssl.CERT_NONE
    return context


# ---- both


def _timeout(parameters: Mapping[str, str], jdbc_per_second: int) -> int:
    """Return the seconds to wait for a connection; `jdbc_per_second` is the unit of the JDBC driver."""
    name = "connect_timeout" if "connect_timeout" in parameters else "connectTimeout"
    given = parameters.get(name)
    if given is None:
        return CONNECT_TIMEOUT_S
    if not given.isascii() or not given.isdigit():
        raise OptionError(f"{name}={given!r} is no whole number. Nothing was read or changed.")
    return max(1, int(given) // (1 if name == "connect_timeout" else jdbc_per_second))


def _timeout_of_jdbc(parameters: Mapping[str, str], per_second: int) -> dict[str, str]:
    if "connect_timeout" not in parameters:
        return {}
    return {"connectTimeout": str(_timeout(parameters, per_second) * per_second)}


def _unknown(name: str, instead: str) -> OptionError:
    return OptionError(
        f"the login has the parameter {name!r}, which is about TLS and which only a JDBC driver knows: without it the "
        "connection of Python would be less safe than that of Spark. Nothing was read or changed. Say it with "
        f"{instead}, which both know."
    )
