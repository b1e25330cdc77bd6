"""Logins of databases from Airflow's connections, for what workers do with databases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from airflow.sdk.log import mask_secret

from airflow_bookmarks.airflow_compat import AirflowNotFoundException, BaseHook
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin

if TYPE_CHECKING:
    from collections.abc import Iterable


class AirflowAccess:
    """Finds the login for `conn:crm` in the Airflow connection `crm`, of a type of `DatabaseLogin.of_fields`.

    Example:
        AirflowAccess().login(DatabaseAddress.parse("conn:crm"))
    """

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        """Return the login for an address; that of a URL has no user and no password.

        Raises:
            OptionError: Airflow has no such connection, or it is of another type, or incomplete.
        """
        if address.conn_id is None:
            return DatabaseLogin.of_address(address)
        try:
            connection = BaseHook.get_connection(address.conn_id)
        except AirflowNotFoundException as error:
            raise OptionError(
                f"no login is found for {address}: Airflow has no connection {address.conn_id!r}. Nothing was read or "
                f"changed. Create it (airflow connections add {address.conn_id} --conn-type postgres ...)."
            ) from error
        return DatabaseLogin.of_fields(
            conn_type=connection.conn_type,
            host=connection.host,
            port=connection.port,
            schema=connection.schema,
            login=connection.login,
            password=connection.password,
            extra=connection.extra_dejson,
            what=f"the connection {address.conn_id!r}",
        )


def connection_environment(conn_ids: Iterable[str]) -> dict[str, str]:
    """Return Airflow connections as the variables in which a driver without Airflow looks for them.

    Raises:
        OptionError: Airflow has no such connection, or it is none of a database.

    Example:
        connection_environment(["crm"])["AIRFLOW_CONN_CRM"]  # '{"conn_type": "postgres", "host": ...}'
    """
    return {f"AIRFLOW_CONN_{conn_id.upper()}": _as_json(conn_id) for conn_id in conn_ids}


def _as_json(conn_id: str) -> str:
    AirflowAccess().login(DatabaseAddress(conn_id=conn_id))  # what is no login of a database is refused here
    connection = BaseHook.get_connection(conn_id)
    if connection.password:
        mask_secret(connection.password)
    fields = {name: getattr(connection, name) for name in ("conn_type", "host", "port", "schema", "login", "password")}
    return json.dumps({**fields, "extra": connection.extra_dejson}, ensure_ascii=False)
