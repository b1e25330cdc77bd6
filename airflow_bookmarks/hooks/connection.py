"""The connection type `bookmarks`: its fields, checked, as one store address."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.store.uri import StoreAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_CONNECTION = "bookmarks_default"


@dataclass(frozen=True, slots=True)
class ConnectionFields:
    """The fields of a connection of type `bookmarks`; None where a field is empty.

    `store` is a store URI; `namespace`, `region`, `endpoint` and `names` may stand there or here. `names` is "ascii"
    where new names outside of ASCII are refused. `aws_conn_id` names the Airflow connection with the AWS credentials
    (None: boto3's own chain). `state_uri` is a folder for state that is too large for the table; it may stand in the
    store URI too. `default_option` is what tasks do that name none. `hide_state` is "true" where nobody is shown the
    values of `job.state` by way of this connection.
    """

    store: str
    namespace: str | None = None
    aws_conn_id: str | None = None
    region: str | None = None
    endpoint: str | None = None
    state_uri: str | None = None
    names: str | None = None
    default_option: str | None = None
    hide_state: str | None = None

    @classmethod
    def of(cls, conn_id: str, extra: Mapping[str, Any]) -> ConnectionFields:
        """Check the extra fields of a connection.

        Raises:
            OptionError: an unknown field, no store, a value that is no text, or an option that does not exist.
        """
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(extra) - known)
        if unknown:
            raise OptionError(
                f"connection {conn_id!r} has an unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}. "
                "Nothing was read or changed."
            )
        odd = sorted(name for name, value in extra.items() if value is not None and not isinstance(value, str))
        if odd:
            raise OptionError(f"connection {conn_id!r}: field {odd[0]!r} has to be text. Nothing was read or changed.")
        given = {name: value for name, value in extra.items() if value}
        if "store" not in given:
            raise OptionError(
                f"connection {conn_id!r} names no store; set its field 'store', e.g. "
                "dynamodb://bookmarks?region=eu-west-1. Nothing was read or changed."
            )
        if "default_option" in given:
            Option.parse(given["default_option"])
        if given.get("hide_state", "false") not in ("true", "false"):
            raise OptionError(
                f"connection {conn_id!r}: the field 'hide_state' is {given['hide_state']!r}, and has to be 'true' or "
                "'false'. Nothing was read or changed."
            )
        connection = cls(**given)
        connection._merged(conn_id)
        return connection

    @property
    def address(self) -> StoreAddress:
        """Where the store is, from URI and fields together."""
        return self._merged("")

    def _merged(self, conn_id: str) -> StoreAddress:
        address = StoreAddress.parse(self.store)
        # From the URI's own text: a parsed address does not tell an omitted default from a written one.
        in_uri = dict(parse_qsl(urlsplit(self.store).query))
        changes: dict[str, str] = {}
        for name in ("namespace", "region", "endpoint", "names"):
            here, there = getattr(self, name), in_uri.get(name)
            if here is None or here == there:
                continue
            if there is not None:
                raise OptionError(
                    f"connection {conn_id!r}: the field {name!r} says {here!r}, and the store URI says {there!r}. "
                    "Nothing was read or changed. Leave one of them out."
                )
            if address.scheme == "sqlite" and name in ("region", "endpoint"):
                raise OptionError(
                    f"connection {conn_id!r}: an SQLite store has no {name!r}; leave the field empty. Nothing was "
                    "read or changed."
                )
            changes[name] = here
        merged = StoreAddress.parse(str(replace(address, **changes)))  # type: ignore[arg-type]
        if self.state_uri is None:
            return merged
        return merged.with_state_uri(self.state_uri, f"connection {conn_id!r}: the field 'state_uri'")
