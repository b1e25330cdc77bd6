"""Determine who uses the command line: from AWS or the operating system, never from what that person claims.

Store in DynamoDB   the caller identity of the AWS credentials with which the store is opened, by STS
Store in SQLite     the user of the operating system, by the real user id of the process
"""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_bookmarks.core.text.endpoint import is_loopback, is_of_aws
from airflow_bookmarks.core.text.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boto3.session import Session
    from mypy_boto3_sts.client import STSClient

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_STS_TIMEOUT_S = 5
_STS_TRIES = 2
_GLOBAL_REGION = "us-east-1"  # an identity is the same everywhere; STS wants some region
# An interface endpoint without private names has to be configured. AWS gives names under `sts` to STS alone: those of a
# service that somebody else offers to VPCs lie under `vpce-svc-...`.
_STS_IN_VPC = re.compile(r"vpce-[0-9a-z-]+\.sts\.[0-9a-z-]+\.vpce\.amazonaws\.com(\.cn)?")


def present_identity(store: BookmarkStore, credentials: Mapping[str, str] | None = None) -> Identity:
    """Return who works with `store` at this command line.

    Args:
        credentials: of an Airflow connection, as environment variables of AWS; None or empty: those of boto3's chain.
    """
    details = store.describe()
    user = os_identity()
    if details["kind"] == "sqlite":
        return user
    return aws_identity(details["host"], details["region"], credentials) or replace(user, is_authenticated=False)


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

    Which STS is asked follows from where the store is, and not from what the environment says of endpoints:

    Store in AWS        AWS's own STS, or an interface endpoint of it in a VPC
    Store on loopback   an STS on loopback, which belongs to the same emulator
    Store elsewhere     the STS of the same host and port; there is no other that knows its callers
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        client = _sts(store_host, region, credentials or {})
        if client is None:
            return None
        return Identity(client.get_caller_identity()["Arn"], True, "aws")
    except (BotoCoreError, ClientError, ResponseParserError, KeyError, ValueError):  # the last: no URL is configured
        return None  # nobody vouches: who works here is a name, and may look and change, but not approve


def _sts(store_host: str, region: str | None, credentials: Mapping[str, str]) -> STSClient | None:
    """Return a client of the STS that may vouch for callers of this store; None where there is none."""
    session = _session(region, credentials)
    configured, own = _client(session, is_own=False), _client(session, is_own=True)
    said = urlsplit(configured.meta.endpoint_url)
    if is_of_aws(store_host):
        is_in_vpc = said.scheme == "https" and _STS_IN_VPC.fullmatch(said.netloc) is not None
        return configured if is_in_vpc else own
    is_emulator = is_loopback(store_host) and is_loopback(said.netloc)
    return configured if is_emulator or said.netloc == store_host else None


def _session(region: str | None, credentials: Mapping[str, str]) -> Session:
    """Return a session that takes its models from botocore alone: those of AWS_DATA_PATH name endpoints too."""
    from boto3.session import Session
    from botocore.loaders import Loader
    from botocore.session import get_session

    core = get_session()
    models = Loader(extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False)
    core.register_component("data_loader", models)
    return Session(
        aws_access_key_id=credentials.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=credentials.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=credentials.get("AWS_SESSION_TOKEN") or None,
        region_name=region,
        botocore_session=core,
    )


def _client(session: Session, *, is_own: bool) -> STSClient:
    from botocore.config import Config

    config = Config(
        connect_timeout=_STS_TIMEOUT_S,
        read_timeout=_STS_TIMEOUT_S,
        retries={"total_max_attempts": _STS_TRIES, "mode": "standard"},
        ignore_configured_endpoint_urls=is_own,  # type: ignore[call-arg]  # the stubs do not have it yet
    )
    return session.client("sts", region_name=session.region_name or _GLOBAL_REGION, config=config)
