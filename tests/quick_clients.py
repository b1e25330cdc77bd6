"""What lets the clients that tests make, one or more in each test, be there at once.

A session of botocore reads its descriptions of services again, for a tenth of a second, and PyMySQL reads the
authorities that the machine trusts for each connection, though it verifies nothing by default. Both give the same each
time.
"""

from __future__ import annotations

import functools
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import botocore.session

if TYPE_CHECKING:
    import pytest


_MASKERS = (
    "airflow._shared.secrets_masker.secrets_masker",
    "airflow.sdk._shared.secrets_masker.secrets_masker",
    "airflow.sdk.execution_time.secrets_masker",  # before 3.2
)


def forget_masks() -> None:
    """Let Airflow forget the secrets that earlier tests have used.

    It looks for all of them with one pattern, which is compiled anew with each that is added: by the end of the tests
    that takes half of the time.
    """
    for name in _MASKERS:
        forget = getattr(sys.modules.get(name), "reset_secrets_masker", None)
        if forget is not None:
            forget()


def keep_what_clients_read(patch: pytest.MonkeyPatch) -> None:
    """Let all clients of this process share what they read from files."""
    patch.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
    try:
        from pymysql.connections import Connection
    except ImportError:
        return  # a driver without the extra for MySQL and MariaDB
    make: Callable[[object, Any], ssl.SSLContext] = vars(Connection)["_create_ssl_ctx"]
    without_authority: list[ssl.SSLContext] = []

    def kept(self: object, given: Any) -> ssl.SSLContext:
        if given != {}:
            return make(self, given)
        if not without_authority:
            without_authority.append(make(self, given))
        return without_authority[0]

    patch.setattr(Connection, "_create_ssl_ctx", kept)
