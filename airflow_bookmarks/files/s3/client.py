"""Clients of S3, one for each way in which buckets are reached, and the meaning of S3's errors."""

from __future__ import annotations

import functools
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3.session
from botocore import UNSIGNED
from botocore import exceptions as aws
from botocore.config import Config
from botocore.parsers import ResponseParserError

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.endpoint import is_readable
from airflow_bookmarks.files.filesystem import FileSystemError
from airflow_bookmarks.files.s3.page import DAMAGED, PageError, parse_instead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3.client import S3Client

    from airflow_bookmarks.files.s3.settings import S3Access, S3Settings

ATTEMPTS = 8  # of a request that is throttled or not answered; its pauses add up to about a minute

INSECURE_VARIABLE = "AIRFLOW_BOOKMARKS_S3_INSECURE"

_CONNECT_TIMEOUT_S = 5
_READ_TIMEOUT_S = 120  # a copy of some gigabytes is one request

_BROKEN = (aws.IncompleteReadError, aws.ResponseStreamingError, PageError, ResponseParserError)

_GONE = frozenset(["404", "NoSuchKey", "NotFound"])
_DENIED = frozenset(["403", "AccessDenied", "AllAccessDisabled", "AccountProblem"])
_THROTTLED = frozenset(
    ["503", "SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "Throttling", "TooManyRequests"]
)
_KEYS = frozenset(
    [
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    ]
)
_ELSEWHERE = frozenset(
    ["301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"]
)
_NO_CREDENTIALS = (
    aws.CredentialRetrievalError,
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.SSOError,
    aws.TokenRetrievalError,
)


class S3Clients:
    """The clients of one set of settings. Safe between threads: buckets that are reached alike share a client."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self._clients: dict[S3Access, S3Client] = {}
        self._lock = threading.Lock()

    def of(self, bucket: str) -> S3Client:
        """Return the client for a bucket.

        Raises:
            OptionError: its credentials are half given, or of a kind that can't be found without Spark; or its endpoint
                is none.
            FileSystemError: the profile that the environment names is none.
        """
        access = self._settings.of(bucket)
        with self._lock:
            if access not in self._clients:
                self._clients[access] = self._client(bucket, access)
            return self._clients[access]

    def _client(self, bucket: str, access: S3Access) -> S3Client:
        access.check()
        try:
            with telling(f"s3a://{bucket} can't be reached"):
                return _client(access, self._settings.connections)
        except ValueError as error:
            raise OptionError(
                f"s3a://{bucket} can't be reached: {access.url!r} is no endpoint ({error}). Nothing was read or "
                "changed. Correct spark.hadoop.fs.s3a.endpoint or spark.bookmarks.s3.endpoint, or AWS_ENDPOINT_URL_S3."
            ) from error


def clients_of(settings: S3Settings) -> S3Clients:
    """Return the clients of some settings; the same ones each time, because a client takes long to make.

    What the settings leave open boto3 takes from the environment (endpoint, credentials, profile, proxy) when a client
    is made. So a process that changes its environment gets other clients, and not those of an earlier endpoint.
    """
    return _clients_of(settings, _environment())


@functools.lru_cache(maxsize=8)
def _clients_of(settings: S3Settings, environment: frozenset[tuple[str, str]]) -> S3Clients:
    return S3Clients(settings)


def _environment() -> frozenset[tuple[str, str]]:
    """Return the variables that boto3 makes a client by."""
    return frozenset(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith("AWS_") or name.lower() in ("http_proxy", "https_proxy", "no_proxy")
    )


# A child has connections of its own: on those of its parent their answers would be mixed up.
os.register_at_fork(after_in_child=_clients_of.cache_clear)


def _checksums() -> Config:
    """Return the options for no more checksums than are needed: stores that only speak S3 know fewer than AWS."""
    try:
        return Config(request_checksum_calculation="when_required", response_checksum_validation="when_required")
    except TypeError:  # botocore before 1.36, that of Glue 5.0, has no such options, and sends no more than are needed
        return Config()


def _client(access: S3Access, connections: int) -> S3Client:
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        max_pool_connections=2 * connections,  # parts of large files are copied besides
        retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS},
        s3={"addressing_style": "path" if access.path_style else "auto"},
    ).merge(_checksums())
    if access.is_anonymous:
        config = config.merge(Config(signature_version=UNSIGNED))
    client = boto3.session.Session().client(
        "s3",
        region_name=access.signing_region,
        endpoint_url=access.url,
        aws_access_key_id=access.access_key,
        aws_secret_access_key=access.secret_key,
        aws_session_token=access.session_token,
        config=config,
    )
    if is_readable(client.meta.endpoint_url) and not _may_be_readable(access):
        client.close()
        raise OptionError(_readable(client.meta.endpoint_url))
    # With the star where it is, this runs before botocore's own handler, which would parse each page for errors first.
    client.meta.events.register("before-parse.*.ListObjectsV2", parse_instead)
    return client


def _may_be_readable(access: S3Access) -> bool:
    # Outside of a driver only the environment names endpoints, so it decides this too.
    return access.may_be_readable or os.environ.get(INSECURE_VARIABLE) == "true"


def _readable(url: str) -> str:
    return (
        f"S3 is to be reached at http://{urlsplit(url).netloc.rpartition('@')[2]}, without TLS and on another "
        "machine: who sits in between reads and changes files, and signed requests. Nothing was sent. Take an https:// "
        "endpoint; or, in a network that you trust, set spark.bookmarks.s3.insecure=true (or "
        "fs.s3a.connection.ssl.enabled=false) on the driver, and the environment variable "
        f"{INSECURE_VARIABLE}=true elsewhere."
    )


def code_of(error: aws.ClientError) -> str:
    """Return S3's code of an error; of a HEAD, whose answers have no body, the HTTP status."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_gone(error: aws.ClientError) -> bool:
    """Whether S3 says that there is no such object."""
    return code_of(error) in _GONE


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Describe a refusal of S3; `what` says what can't be done.

    Raises:
        FileSystemError: S3 refused, or did not answer.
    """
    try:
        yield
    except (aws.ClientError, aws.BotoCoreError, *_BROKEN) as error:
        raise FileSystemError(f"{what}: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    if isinstance(error, aws.ClientError):
        return _refusal(error)
    if isinstance(error, _NO_CREDENTIALS):
        return (
            f"no credentials were found ({error}). Nothing was read or changed. Give them to this process "
            "(environment, profile or role), or to the driver as spark.hadoop.fs.s3a.access.key and secret.key, or as "
            "spark.bookmarks.s3.access.key and secret.key."
        )
    if isinstance(error, _BROKEN):
        return _damaged(error)
    if isinstance(error, (aws.ParamValidationError, aws.ProfileNotFound)):
        return f"{error}. Nothing was read or changed. Correct the name of the bucket or of the profile."
    return (
        f"S3 did not answer ({error}). What had come is not taken for the whole. Check network and endpoint: "
        "spark.hadoop.fs.s3a.endpoint or spark.bookmarks.s3.endpoint on the driver, AWS_ENDPOINT_URL_S3 elsewhere."
    )


def _damaged(error: Exception) -> str:
    return (
        f"the answer of S3 was cut off or damaged ({error}). What had come is not taken for the whole, and nothing was "
        "changed. Try again; if it stays, look at the network, at proxies, and whether the store lists keys in order."
    )


def _refusal(error: aws.ClientError) -> str:
    code, said = code_of(error), str(error)
    if code == DAMAGED:
        return _damaged(error)
    if code == "NoSuchBucket":
        return f"there is no such bucket ({said}). Nothing was read or changed. Check its name, and the endpoint."
    if code in _DENIED:
        return (
            f"access denied ({said}). Nothing was read or changed. Give these credentials s3:ListBucket on the bucket "
            "and s3:GetObject on its keys, and s3:PutObject and s3:DeleteObject where files are published; without "
            "s3:ListBucket a key that is missing looks like one that is forbidden."
        )
    if code in _KEYS:
        return f"the credentials are not accepted ({said}). Nothing was read or changed. Renew or correct them."
    if code in _THROTTLED:
        return (
            f"S3 throttles ({said}), also at the last of {ATTEMPTS} attempts. What had come is not taken for the "
            "whole. Try again later, or with fewer requests at a time (spark.bookmarks.s3.connections)."
        )
    if code in _ELSEWHERE:
        return (
            f"the bucket lies in another region or endpoint ({said}). Nothing was read or changed. Name its region: "
            "spark.hadoop.fs.s3a.endpoint.region or spark.bookmarks.s3.endpoint.region on the driver, AWS_REGION "
            "elsewhere."
        )
    return f"S3 refused it ({said}). Nothing more was read or changed. Mend the cause and try again."
