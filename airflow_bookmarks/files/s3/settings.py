"""Settings to reach S3: endpoint, region, credentials, as in the Spark conf. Without boto3.

The names are those of s3a after `spark.hadoop.fs.s3a.` or, set in a session, `fs.s3a.`; the same name after
`spark.bookmarks.s3.` wins over both. Each may stand behind `bucket.<name>.` and is for that bucket then. What nobody
says is found by boto3's own chain: environment, profile, role.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

S3_SCHEMES = ("s3a", "s3", "s3n")

_S3A = "spark.hadoop.fs.s3a."
_S3A_OF_SESSION = "fs.s3a."  # as spark.conf.set takes it
_OURS = "spark.bookmarks.s3."
_BUCKET = "bucket."

# s3a's name of a setting, and the attribute that holds it.
_ACCESS = {
    "endpoint": "endpoint",
    "endpoint.region": "region",
    "path.style.access": "path_style",
    "connection.ssl.enabled": "ssl",
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "aws.credentials.provider": "provider",
    "insecure": "insecure",  # s3a has no such setting
}
_ONLY_OURS = ("scheme", "connections")
_BOOLEANS = ("path_style", "ssl", "insecure")
_REGION_OF_ENDPOINT = re.compile(r"(?:^|//)s3[.-](?:dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com")
_CENTRAL = re.compile(r"^(?:https?://)?s3\.amazonaws\.com/?$")
# Providers that read the same as boto3's own chain.
_FOLLOWED = re.compile(
    r"(Simple|Temporary|Anonymous|EnvironmentVariable|IAMInstance|InstanceProfile|EC2ContainerCredentialsProviderWrapper"
    r"|Container|WebIdentityToken|Profile|Default|DefaultAWSCredentialsProviderChain)\w*$"
)


@dataclass(frozen=True, slots=True)
class S3Access:
    """How one bucket is reached; None where nothing is set. `provider` is s3a's class of credentials."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    ssl: bool | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    provider: str | None = None
    insecure: bool | None = None

    @property
    def may_be_readable(self) -> bool:
        """Whether requests to another machine without TLS were allowed explicitly, also by s3a's setting."""
        return self.insecure is True or self.ssl is False

    @property
    def url(self) -> str | None:
        """The endpoint with its protocol; None for AWS's own."""
        if self.endpoint is None or _CENTRAL.match(self.endpoint):
            return None  # the one name of all regions: boto3 finds that of the bucket
        if "://" in self.endpoint:
            return self.endpoint
        return f"{'http' if self.ssl is False else 'https'}://{self.endpoint}"

    @property
    def signing_region(self) -> str | None:
        """The region, also where only the endpoint names it."""
        named = _REGION_OF_ENDPOINT.search(self.endpoint or "")
        return self.region or (named[1] if named else None)

    @property
    def is_anonymous(self) -> bool:
        """Whether requests are not signed."""
        return self.access_key is None and (self.provider or "").endswith("AnonymousAWSCredentialsProvider")

    def check(self) -> None:
        """Make sure that the credentials are whole, and of a kind that can be found without Spark.

        Raises:
            OptionError: otherwise.
        """
        if (self.access_key is None) != (self.secret_key is None):
            raise OptionError(
                "of fs.s3a.access.key and fs.s3a.secret.key only one is given. Nothing was read or changed. Give both "
                "in the Spark conf, or neither (environment, profile or role then)."
            )
        unknown = [p for p in (self.provider or "").split(",") if p.strip() and not _FOLLOWED.search(p.strip())]
        if self.access_key is None and unknown:
            raise OptionError(
                f"fs.s3a.aws.credentials.provider={self.provider!r}: files are listed outside of Spark, where "
                f"{unknown[0].strip()!r} can't be asked for credentials. Nothing was read or changed. Give them as "
                f"{_OURS}access.key, {_OURS}secret.key and, where there is one, {_OURS}session.token; or set "
                f"{_OURS}aws.credentials.provider=Default to use environment, profile or role."
            )


@dataclass(frozen=True, slots=True)
class S3Settings:
    """How S3 is reached. Without arguments: as boto3 finds it out by itself.

    `buckets` holds what is said of one bucket alone, `scheme` by which scheme Spark is to read and write ("s3a", "s3";
    None: as the path was given), `connections` how many requests go at a time.
    """

    access: S3Access = S3Access()
    buckets: tuple[tuple[str, S3Access], ...] = ()
    scheme: str | None = None
    connections: int = 16

    @classmethod
    def of_spark_conf(cls, conf: Mapping[str, str]) -> S3Settings:
        """Apply the settings of a Spark conf.

        Raises:
            OptionError: a key under `spark.bookmarks.s3.` that is none of ours, or a value that is none.

        Example:
            >>> conf = {"spark.hadoop.fs.s3a.endpoint": "minio:9000", "spark.bookmarks.s3.endpoint": "http://store:9000"}
            >>> S3Settings.of_spark_conf(conf).of("lake").url
            'http://store:9000'
        """
        said: dict[str, dict[str, str | bool]] = {}
        own: dict[str, str] = {}
        for prefix in (_S3A, _S3A_OF_SESSION, _OURS):
            for key, value in conf.items():
                if not key.startswith(prefix) or value == "":
                    continue
                name = key.removeprefix(prefix)
                bucket, setting = _bucket_and_setting(name)
                if setting in _ACCESS:
                    said.setdefault(bucket, {})[_ACCESS[setting]] = _value(key, _ACCESS[setting], value)
                elif prefix == _OURS and name in _ONLY_OURS:
                    own[name] = value
                elif prefix == _OURS:
                    raise OptionError(
                        f"unknown setting {key}; known after {_OURS} are {', '.join([*_ACCESS, *_ONLY_OURS])}. Nothing "
                        "was read or changed."
                    )
        access = _access(said.pop("", {}))
        buckets = tuple(sorted((bucket, _access(details)) for bucket, details in said.items()))
        return cls(access, buckets, _scheme(own.get("scheme")), _connections(own.get("connections", "16")))

    def of(self, bucket: str) -> S3Access:
        """Return how a bucket is reached: by its own settings, else by those for all buckets."""
        special = dict(self.buckets).get(bucket)
        if special is None:
            return self.access
        given = {f.name: getattr(special, f.name) for f in fields(S3Access)}
        if special.access_key is not None:  # a token belongs to its keys
            given["session_token"] = special.session_token or ""
        merged = replace(self.access, **{name: value for name, value in given.items() if value is not None})
        return replace(merged, session_token=merged.session_token or None)


def _bucket_and_setting(name: str) -> tuple[str, str]:
    if not name.startswith(_BUCKET):
        return "", name
    rest = name.removeprefix(_BUCKET)
    # A bucket's name may have dots in it, and so has a setting's: the longest setting that fits.
    for setting in sorted(_ACCESS, key=len, reverse=True):
        if rest.endswith(f".{setting}"):
            return rest.removesuffix(f".{setting}"), setting
    return "", name


def _access(details: Mapping[str, str | bool]) -> S3Access:
    return S3Access(**details)  # type: ignore[arg-type]  # _value made them what the attributes are


def _value(key: str, attribute: str, value: str) -> str | bool:
    if attribute not in _BOOLEANS:
        return value.strip()
    if value.strip().lower() not in ("true", "false"):
        raise OptionError(f"{key}={value!r}: expected true or false. Nothing was read or changed.")
    return value.strip().lower() == "true"


def _scheme(value: str | None) -> str | None:
    if value is not None and value not in S3_SCHEMES:
        raise OptionError(f"{_OURS}scheme={value!r}: expected one of {S3_SCHEMES}. Nothing was read or changed.")
    return value


def _connections(value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 256):
        raise OptionError(f"{_OURS}connections={value!r}: expected 1 to 256. Nothing was read or changed.")
    return int(value)
