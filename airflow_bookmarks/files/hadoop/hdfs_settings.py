"""Settings to reach HDFS over HTTP, from Hadoop's own configuration or the Spark conf. Without fsspec.

Hadoop's configuration is `core-site.xml` and `hdfs-site.xml` in HADOOP_CONF_DIR (or `$HADOOP_HOME/etc/hadoop`); what
the Spark conf sets after `spark.hadoop.` wins over it. If neither sets it, a name node serves HTTP on Hadoop's default
port.
"""

from __future__ import annotations

import getpass
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as XML

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

_OURS = "spark.bookmarks.hdfs."
_HADOOP = "spark.hadoop."
_KNOWN = ("http", "user")
_FILES = ("core-site.xml", "hdfs-site.xml")
_DEFAULT_FS = "fs.defaultFS"
_HTTP_PORT, _HTTPS_PORT, RPC_PORT = 9870, 9871, 8020


@dataclass(frozen=True, slots=True)
class Address:
    """Where a name node, or an HttpFS gateway, answers."""

    host: str
    port: int
    is_secure: bool = False

    @classmethod
    def of(cls, text: str, *, is_secure: bool = False) -> Address:
        """Parse `host:port`, with Hadoop's port if it is left out.

        Raises:
            OptionError: it is neither.

        Example:
            >>> Address.of("names:9870"), Address.of("names", is_secure=True)
            (Address(host='names', port=9870, is_secure=False), Address(host='names', port=9871, is_secure=True))
        """
        host, _, port = text.strip().partition(":")
        if not host or not (port == "" or (port.isascii() and port.isdigit())):
            raise OptionError(f"{text!r} is no address of HDFS: expected host:port. Nothing was read or changed.")
        return cls(host, int(port) if port else _HTTPS_PORT if is_secure else _HTTP_PORT, is_secure)


@dataclass(frozen=True, slots=True)
class HdfsSettings:
    """How HDFS is reached. Without arguments: as Hadoop's defaults say.

    `properties` are Hadoop's own, `http` the addresses that were named for all of HDFS, `named_user` the user to send
    where no proof is required.
    """

    properties: tuple[tuple[str, str], ...] = ()
    http: tuple[Address, ...] = ()
    named_user: str | None = None

    @classmethod
    def of_environment(cls) -> HdfsSettings:
        """Read Hadoop's configuration, if the environment names one."""
        return cls(tuple(sorted(_configuration().items())))

    @classmethod
    def of_spark_conf(cls, conf: Mapping[str, str]) -> HdfsSettings:
        """Apply the settings of a Spark conf, on top of Hadoop's configuration.

        Raises:
            OptionError: a key under `spark.bookmarks.hdfs.` that is none of ours, or an address that is none.

        Example:
            >>> conf = {"spark.bookmarks.hdfs.http": "gateway:14000", "spark.bookmarks.hdfs.user": "etl"}
            >>> HdfsSettings.of_spark_conf(conf).addresses("names")
            (Address(host='gateway', port=14000, is_secure=False),)
        """
        own = {key.removeprefix(_OURS): value for key, value in conf.items() if key.startswith(_OURS) and value != ""}
        unknown = sorted(set(own) - set(_KNOWN))
        if unknown:
            raise OptionError(
                f"unknown setting {_OURS}{unknown[0]}; known after {_OURS} are {', '.join(_KNOWN)}. Nothing was read "
                "or changed."
            )
        said = {key.removeprefix(_HADOOP): value for key, value in conf.items() if key.startswith(_HADOOP)}
        properties = {**_configuration(), **{key: value for key, value in said.items() if _is_of_hdfs(key)}}
        http = tuple(map(Address.of, filter(None, own.get("http", "").split(","))))
        return cls(tuple(sorted(properties.items())), http, own.get("user"))

    def get(self, name: str) -> str | None:
        """Return one of Hadoop's properties; None if it is not set."""
        return dict(self.properties).get(name) or None

    @property
    def default_authority(self) -> str | None:
        """Which HDFS a path without one means; None where the default file system is another one."""
        scheme, _, rest = (self.get(_DEFAULT_FS) or "").partition("://")
        return rest.partition("/")[0] or None if scheme == "hdfs" else None

    @property
    def is_kerberos(self) -> bool:
        """Whether clients have to authenticate by Kerberos."""
        return self.get("hadoop.security.authentication") == "kerberos"

    @property
    def user(self) -> str:
        """The user name to send where no proof is required, found as Hadoop's own client does."""
        return self.named_user or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()

    def addresses(self, authority: str) -> tuple[Address, ...]:
        """Return where the name nodes of `hdfs://<authority>/` answer; of several, one is active at a time."""
        if self.http:
            return self.http
        nodes = [node.strip() for node in (self.get(f"dfs.ha.namenodes.{authority}") or "").split(",") if node.strip()]
        if nodes:
            return tuple(self._address(f".{authority}.{node}", f"{authority}.{node}") for node in nodes)
        host = authority.partition(":")[0]
        if self.get(f"dfs.namenode.{self._protocol}-address.{authority}"):  # one name node, under a name
            return (self._address(f".{authority}", host),)
        return (self._address("", host),) if self._is_ours(authority) else (self._by_default(host),)

    @property
    def _protocol(self) -> str:
        return "https" if self.get("dfs.http.policy") == "HTTPS_ONLY" else "http"

    def _is_ours(self, authority: str) -> bool:
        """Whether the properties without a name are of this name node, and not of another one."""
        named = {self.get("dfs.namenode.rpc-address"), self.default_authority}
        return authority in {without_default_port(name) for name in named if name}

    def _address(self, suffix: str, host: str) -> Address:
        text = self.get(f"dfs.namenode.{self._protocol}-address{suffix}")
        if text is None:
            return self._by_default(host)
        found = Address.of(text, is_secure=self._protocol == "https")
        # It listens on all of its addresses, which is no address to connect to.
        return Address(host, found.port, found.is_secure) if found.host == "0.0.0.0" else found  # noqa: S104 (as read)

    def _by_default(self, host: str) -> Address:
        return Address.of(host, is_secure=self._protocol == "https")


def without_default_port(authority: str) -> str:
    """Return a name node's authority without the port if that is Hadoop's own.

    Example:
        >>> without_default_port("names:8020"), without_default_port("names:9000")
        ('names', 'names:9000')
    """
    return authority.removesuffix(f":{RPC_PORT}")


def _is_of_hdfs(name: str) -> bool:
    return name.startswith(("dfs.", "hadoop.security.")) or name == _DEFAULT_FS


def _configuration() -> dict[str, str]:
    folder = _folder()
    if folder is None:
        return {}
    found: dict[str, str] = {}
    for name in _FILES:
        path = folder / name
        if path.is_file():
            found.update(_properties(path))
    return {name: text for name, text in found.items() if _is_of_hdfs(name)}


def _folder() -> Path | None:
    if os.environ.get("HADOOP_CONF_DIR"):
        return Path(os.environ["HADOOP_CONF_DIR"])
    home = os.environ.get("HADOOP_HOME")
    return Path(home) / "etc" / "hadoop" if home else None


def _properties(path: Path) -> dict[str, str]:
    try:
        root = XML.parse(path).getroot()  # noqa: S314  # whoever writes it says where the data is anyway
    except (XML.ParseError, OSError) as error:
        raise OptionError(
            f"{str(path)!r}, which says how HDFS is reached, can't be read: {error}. Nothing was read or changed. Mend "
            "it, or unset HADOOP_CONF_DIR and give spark.bookmarks.hdfs.http."
        ) from error
    pairs = ((entry.findtext("name"), entry.findtext("value")) for entry in root.iter("property"))
    return {name.strip(): text.strip() for name, text in pairs if name is not None and text is not None}
