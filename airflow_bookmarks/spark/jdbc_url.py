"""The URL of a database for Spark's own JDBC source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_bookmarks.databases.login import DatabaseLogin

# TIMESTAMP is shown in the zone of a session, and a window is in UTC.
_IN_UTC = {"connectionTimeZone": "UTC", "forceConnectionTimeZoneToSession": "true"}


def spark_url(login: DatabaseLogin) -> str:
    """Return the URL that Spark reads and writes a database by, without secrets.

    Spark quotes the names of columns by the beginning of the URL. It does not know that of MariaDB, and would put them
    in double quotes, which MariaDB takes for text: each value would be the name of its column. The driver of MariaDB
    takes the URL of MySQL where that says so.

    Raises:
        OptionError: the driver can't do what a parameter says about TLS.
    """
    url = login.jdbc_url
    more = {}
    if login.dialect in ("mysql", "mariadb"):
        more = {name: value for name, value in _IN_UTC.items() if name not in login.parameters}
    if login.dialect == "mariadb":
        url = f"jdbc:mysql:{url.removeprefix('jdbc:mariadb:')}"
        more["permitMysqlScheme"] = "true"
    if not more:
        return url
    return f"{url}{'&' if '?' in url else '?'}{'&'.join(f'{name}={value}' for name, value in more.items())}"
