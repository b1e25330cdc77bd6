"""Parse the address of a state store: one line of text that is passed as a setting.

    dynamodb://TABLE?region=eu-west-1&namespace=prod&endpoint=http://127.0.0.1:8000
    sqlite:////var/lib/bookmarks.db?namespace=x&create=true
    sqlite:///:memory:

Either may have state_uri=s3://bucket/prefix, a folder for state that is too large for the table. insecure=true allows
an endpoint without TLS on another machine; the loopback interface does not need it. names=ascii refuses new names
outside of ASCII; names=unicode is the default.

It never holds a secret: credentials come from the environment, the machine's role or an Airflow connection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE, check_name
from airflow_bookmarks.store.object_store import check_reach, check_state_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY = ":memory:"

_EXAMPLES = {
    "dynamodb": "dynamodb://bookmarks?region=eu-west-1&namespace=prod",
    "sqlite": "sqlite:////var/lib/bookmarks.db?namespace=prod",
}
_PARAMETERS = {
    "dynamodb": ("region", "endpoint", "insecure", "namespace", "state_uri", "names"),
    "sqlite": ("namespace", "create", "state_uri", "names"),
}
_NAMES = ("unicode", "ascii")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_REGION = re.compile(r"[a-z0-9-]{1,63}")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The parts of a store's address. `table` is the name of a DynamoDB table, or the path of an SQLite file.

    `str()` gives the text back, with its parameters in one order and the default namespace left out.

    Example:
        >>> StoreAddress.parse("dynamodb://bookmarks?region=eu-west-1").namespace
        'default'
        >>> str(StoreAddress.parse("sqlite:////var/lib/bookmarks.db?namespace=prod"))
        'sqlite:////var/lib/bookmarks.db?namespace=prod'
    """

    scheme: Literal["dynamodb", "sqlite"]
    table: str
    namespace: str = DEFAULT_NAMESPACE
    region: str | None = None
    endpoint: str | None = None
    create: bool = False
    state_uri: str | None = None
    insecure: bool = False
    names: str = _NAMES[0]

    @classmethod
    def parse(cls, uri: str) -> StoreAddress:
        """Return the parts of `uri`.

        Raises:
            OptionError: unknown scheme or parameter, a repeated or empty parameter, credentials in it, a relative path.
            NameInvalidError: the namespace is no name.
        """
        parts = _split(uri)
        given = _parameters(parts)
        namespace = check_name("namespace", given.get("namespace", DEFAULT_NAMESPACE))
        state_uri = _state_uri(given.get("state_uri"), parts.scheme, given.get("endpoint"))
        names = _names(given.get("names"), parts.scheme)
        if parts.scheme == "dynamodb":
            region, endpoint = _region(given.get("region")), _endpoint(given.get("endpoint"))
            insecure = _flag(given, "insecure", parts.scheme)
            name = _table_name(parts)
            return cls(
                "dynamodb", name, namespace, region, endpoint, state_uri=state_uri, insecure=insecure, names=names
            )
        create = _flag(given, "create", parts.scheme)
        return cls("sqlite", _path(parts), namespace, create=create, state_uri=state_uri, names=names)

    @property
    def has_ascii_names(self) -> bool:
        """Whether new names have to be in ASCII."""
        return self.names == "ascii"

    def with_state_uri(self, state_uri: str, where: str) -> StoreAddress:
        """Return this address with a `state_uri` that was given separately; `where` says where, for the error.

        Raises:
            OptionError: the address names another one, or this one can't be.
        """
        checked = _state_uri(state_uri, self.scheme, self.endpoint)
        if self.state_uri not in (None, checked):
            raise OptionError(
                f"{where} says state_uri={checked!r}, and the store's address {self.state_uri!r}. Nothing was read or "
                "changed. Leave one of them out."
            )
        return replace(self, state_uri=checked)

    def __str__(self) -> str:
        given = {
            "region": self.region,
            "endpoint": self.endpoint,
            "insecure": "true" if self.insecure else None,
            "namespace": None if self.namespace == DEFAULT_NAMESPACE else self.namespace,
            "create": "true" if self.create else None,
            "state_uri": self.state_uri,
            "names": None if self.names == _NAMES[0] else self.names,
        }
        query = urlencode(
            {name: value for name, value in given.items() if value is not None}, safe=":/", quote_via=quote
        )
        where = self.table if self.scheme == "dynamodb" else "/" + quote(self.table, safe="/:")
        return f"{self.scheme}://{where}" + (f"?{query}" if query else "")


def _split(uri: str) -> SplitResult:
    try:
        uri.encode()
        parts = urlsplit(uri)
    except ValueError as error:
        raise _wrong(f"can't be read ({error})") from error
    if parts.scheme not in _EXAMPLES:
        raise _wrong(f"has the scheme {parts.scheme!r}; there are {' and '.join(map(repr, _EXAMPLES))}")
    if "@" in parts.netloc:
        # The message does not repeat the text, which holds what may be a password.
        raise _wrong(
            "holds a user or password. Credentials come from the environment, the machine's role or the Airflow "
            "connection, never from the address",
            parts.scheme,
        )
    if parts.fragment:
        raise _wrong("holds a '#', which must be written as %23 in a path", parts.scheme)
    return parts


def _parameters(parts: SplitResult) -> dict[str, str]:
    allowed = _PARAMETERS[parts.scheme]
    given: dict[str, str] = {}
    # The messages omit values: an unknown parameter may hold a secret key.
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in allowed:
            raise _wrong(f"has the unknown parameter {name!r}; {parts.scheme} takes {', '.join(allowed)}", parts.scheme)
        if name in given:
            raise _wrong(f"has the parameter {name!r} twice", parts.scheme)
        if not value:
            raise _wrong(f"has the parameter {name!r} without a value", parts.scheme)
        given[name] = value
    return given


def _table_name(parts: SplitResult) -> str:
    if not _TABLE_NAME.fullmatch(parts.netloc) or parts.path not in ("", "/"):
        raise _wrong(
            f"names the table {parts.netloc + parts.path!r}; the name of a DynamoDB table has 3 to 255 letters, "
            "digits, '_', '-', '.'",
            parts.scheme,
        )
    return parts.netloc


def _region(region: str | None) -> str | None:
    if region is not None and not _REGION.fullmatch(region):
        raise _wrong(f"has the region {region!r}, which is no name of a region", "dynamodb")
    return region


def _endpoint(endpoint: str | None) -> str | None:
    if endpoint is None:
        return None
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or "@" in parts.netloc or parts.query or parts.fragment:
        raise _wrong("has an endpoint that is not http://host:port or https://host, without user or query", "dynamodb")
    return endpoint


def _state_uri(state_uri: str | None, scheme: str, endpoint: str | None) -> str | None:
    if state_uri is None:
        return None
    checked = check_state_uri(state_uri)
    check_reach(checked, scheme, endpoint)
    return checked


def _names(names: str | None, scheme: str) -> str:
    if names is None:
        return _NAMES[0]
    if names not in _NAMES:
        raise _wrong(f"has names={names!r}; it is {' or '.join(_NAMES)}", scheme)
    return names


def _path(parts: SplitResult) -> str:
    path = unquote(parts.path.removeprefix("/"))
    if path == MEMORY and not parts.netloc:
        return path
    if parts.netloc or not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise _wrong(
            f"has the path {parts.netloc + path!r}; only an absolute one of a file is taken, with four slashes in all "
            "(sqlite:////folder/bookmarks.db), because the working directory differs between the processes of a run. "
            f"{MEMORY} stands for no file",
            parts.scheme,
        )
    return path


def _flag(given: Mapping[str, str], name: str, scheme: str) -> bool:
    text = given.get(name, "false")
    if text not in ("true", "false"):
        raise _wrong(f"has {name}={text!r}; it is true or false", scheme)
    return text == "true"


def _wrong(what: str, scheme: str | None = None) -> OptionError:
    examples = [_EXAMPLES[scheme]] if scheme else list(_EXAMPLES.values())
    return OptionError(
        f"the store's address {what}. Nothing was read or changed. Give, for example, {' or '.join(examples)}"
    )
