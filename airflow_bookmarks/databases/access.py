"""Find the login that belongs to the address of a database, in a process without Airflow.

On a worker `hooks.database.AirflowAccess` does the same with Airflow's connections.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import DatabaseError, LookRefusedError, OptionError
from airflow_bookmarks.core.settings import PREFIX
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.files.permission import present_permission

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.databases.address import DatabaseAddress

ACCESS_PREFIX = f"{PREFIX}access."

_ENV, _FILE, _AWS = "env:", "file:", "aws-secret:"
_FORMS = f"{_ENV}NAME of a variable, {_FILE}/PATH of a file, or {_AWS}NAME or ARN of a secret of AWS Secrets Manager"


class DatabaseAccess(Protocol):
    """Whatever knows the logins of databases."""

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        """Return the login for an address.

        Raises:
            OptionError: there is none, or it is incomplete; the message says where it was looked for.
            DatabaseError: the place that keeps it does not answer, or refuses it.
        """
        ...


def login_at(databases: DatabaseAccess, address: DatabaseAddress) -> DatabaseLogin:
    """Return the login for an address that a job has recorded, if this process may connect to it.

    A job's address, connection and query are what a driver or the author of a DAG wrote, so the API server follows
    none of them, as it lists none of their folders.

    Raises:
        LookRefusedError: this process looks only where it is told to. OptionError, DatabaseError: see `DatabaseAccess`.

    Example:
        login = login_at(store.databases, DatabaseAddress.parse("conn:crm"))
    """
    if present_permission() is not None:
        raise LookRefusedError.of_database(str(address))
    return databases.login(address)


@dataclass(frozen=True, slots=True)
class EnvironmentAccess:
    """Finds logins as the settings of a Spark session say, else in the environment of this process.

    For `conn:crm` the setting `spark.bookmarks.access.crm` names a variable (`env:NAME`), a file (`file:/path`), or a
    secret of AWS Secrets Manager (`aws-secret:` and its name or ARN); without it, it is the variable AIRFLOW_CONN_CRM.
    Each holds a connection as Airflow writes one, a URI or JSON; a secret may have the form of RDS. A URL has no user
    and no password: its client takes those it finds by itself.

    Args:
        settings: the conf of the session, or a part of it. It names secrets, and never holds one.

    Example:
        access = EnvironmentAccess({"spark.bookmarks.access.crm": "aws-secret:prod/crm"})
        login = access.login(DatabaseAddress.parse("conn:crm"))
    """

    settings: Mapping[str, str] = field(default_factory=dict)

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        """Return the login for an address; see `DatabaseAccess.login`."""
        if address.conn_id is None:
            return DatabaseLogin.of_address(address)
        conn_id = address.conn_id
        setting = f"{ACCESS_PREFIX}{conn_id}"
        place = self.settings.get(setting)
        if place:
            # What is named and can't be read is an error: another login might reach another database.
            return DatabaseLogin.of_text(_read(place, setting), f"the login for {address}, by {setting},")
        variable = f"AIRFLOW_CONN_{conn_id.upper()}"
        text = os.environ.get(variable)
        if not text:
            raise OptionError(
                f"no login is found for {address}: the variable {variable} is not set in this process, and the session "
                f"has no setting {setting}. Nothing was read or changed. Set one of them; the setting takes {_FORMS}."
            )
        return DatabaseLogin.of_text(text, f"the login for {address}, in the variable {variable},")


class ProcessAccess:
    """Logins that this process alone knows, in memory, for as long as it runs; others are found where `beyond` looks.

    Args:
        beyond: knows the logins that were not added.
        last: is asked for a connection that `beyond` does not know; None: nobody is.

    Example:
        access = ProcessAccess(EnvironmentAccess())
        access.add("crm", DatabaseLogin.of_uri("postgres://etl:secret@db/crm"))
        login = access.login(DatabaseAddress.parse("conn:crm"))
    """

    def __init__(self, beyond: DatabaseAccess, last: DatabaseAccess | None = None) -> None:
        self.beyond, self.last = beyond, last
        self._logins: dict[str, DatabaseLogin] = {}

    def add(self, conn_id: str, login: DatabaseLogin) -> None:
        """Make a login known as `conn:<conn_id>`; one of that name that was added before is replaced."""
        self._logins[conn_id] = login

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        """Return the login for an address; see `DatabaseAccess.login`."""
        known = self._logins.get(address.conn_id or "")
        if known is not None:
            return known
        try:
            return self.beyond.login(address)
        except OptionError:
            if self.last is None or address.conn_id is None:
                raise
            return self.last.login(address)


def _read(place: str, setting: str) -> str:
    """Return the text that a setting names."""
    if place.startswith(_ENV):
        return _of_variable(place.removeprefix(_ENV), setting)
    if place.startswith(_FILE):
        return _of_file(place.removeprefix(_FILE), setting)
    if place.startswith(_AWS):
        return _of_secret(place.removeprefix(_AWS), setting)
    # The value is not repeated: it may be the login itself.
    raise OptionError(
        f"the setting {setting} begins with none of {_ENV!r}, {_FILE!r} and {_AWS!r}. Nothing was read or changed. It "
        f"takes {_FORMS}, never the login itself, which the page of Spark would show."
    )


def _of_variable(name: str, setting: str) -> str:
    text = os.environ.get(name)
    if not text:
        raise OptionError(
            f"the setting {setting} names the variable {name!r}, which is not set in this process. Nothing was read or "
            "changed."
        )
    return text


def _of_file(path: str, setting: str) -> str:
    named = path.removeprefix("//")  # file:///path is the same as file:/path
    if not named.startswith("/"):
        raise OptionError(f"the setting {setting} names a file by no absolute path. Nothing was read or changed.")
    try:
        return Path(named).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not in UTF-8"
        raise OptionError(
            f"the setting {setting} names the file {named!r}, which can't be read: {why}. Nothing was read or changed."
        ) from None


def _of_secret(name: str, setting: str) -> str:
    # Imported where it is needed: it takes half a second.
    import boto3.session
    from botocore.exceptions import BotoCoreError, ClientError

    # An ARN says its region, which the process need not share: arn:aws:secretsmanager:eu-west-1:...
    region = name.split(":")[3] if name.startswith("arn:") and name.count(":") > 5 else None
    try:
        client = boto3.session.Session().client("secretsmanager", region_name=region)
        found = client.get_secret_value(SecretId=name)
    except (BotoCoreError, ClientError) as error:
        raise DatabaseError(
            f"the setting {setting} names the secret {name!r}, which AWS Secrets Manager does not give: "
            f"{redacted(str(error))}. Nothing was read or changed. Correct the name, the region, or the rights of this "
            "process (secretsmanager:GetSecretValue)."
        ) from error
    text = found.get("SecretString")
    if not text:
        raise OptionError(
            f"the setting {setting} names the secret {name!r}, which holds bytes and no text. Nothing was read or "
            "changed. It has to be a connection as Airflow writes one, or in the form of RDS."
        )
    return str(text)
