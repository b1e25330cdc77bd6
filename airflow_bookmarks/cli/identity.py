"""Who sits at the command line: nobody says it, it is found out.

Store in DynamoDB   the caller identity of the AWS credentials with which the store is opened, by STS
Store in SQLite     the user of the operating system, by the real user id of the process
"""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_bookmarks.core.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_STS_TIMEOUT_S = 5
_STS_TRIES = 2
_GLOBAL_REGION = "us-east-1"  # an identity is the same everywhere; STS wants some region


def present_identity(store: BookmarkStore, credentials: Mapping[str, str] | None = None) -> Identity:
    """Return who works with `store` at this command line.

    Args:
        credentials: of an Airflow connection, as environment variables of AWS; None or empty: those of boto3's chain.
    """
    facts = store.table.describe()
    user = os_identity()
    if facts["kind"] == "sqlite":
        return user
    return aws_identity(facts["host"], facts["region"], credentials) or replace(user, is_authenticated=False)


def os_identity() -> Identity:
    """Return the user of the operating system, by number where it has no name (usual in containers).

    From the process itself: the environment (`USER`, `LOGNAME`) says whatever somebody wrote there.
    """
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = f"uid:{number}"
    return Identity(name, True, "os")


def aws_identity(store_host: str, region: str | None, credentials: Mapping[str, str] | None = None) -> Identity | None:
    """Return the AWS caller identity; None where there are no credentials, or STS does not vouch for them.

    A store of an emulator says nothing of AWS: the real STS is not asked about its credentials.
    """
    from boto3.session import Session
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    given = credentials or {}
    session = Session(
        aws_access_key_id=given.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=given.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=given.get("AWS_SESSION_TOKEN") or None,
        region_name=region,
    )
    config = Config(
        connect_timeout=_STS_TIMEOUT_S,
        read_timeout=_STS_TIMEOUT_S,
        retries={"total_max_attempts": _STS_TRIES, "mode": "standard"},
    )
    try:
        client = session.client("sts", region_name=session.region_name or _GLOBAL_REGION, config=config)
        sts_host = urlsplit(client.meta.endpoint_url).hostname or ""
        if _is_of_aws(sts_host) and not _is_of_aws(store_host):
            return None
        return Identity(client.get_caller_identity()["Arn"], True, "aws")
    except (BotoCoreError, ClientError, ResponseParserError, KeyError):
        return None  # nobody vouches: who works here is a name, and may look and change, but not approve


def _is_of_aws(host: str) -> bool:
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
