"""Endpoints: parse the URL of a service into its host and port.

Also called a host here: `name`, `name:port` or `[address]:port`, as a URL has it between `//` and the path.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

_OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine, so that what is sent there leaves it by no network.

    Example:
        >>> [is_loopback(host) for host in ("localhost:8000", "127.0.0.1", "[::1]:8000", "127.0.0.1.example.com")]
        [True, True, True, False]
    """
    name = name_of(host)
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_readable(url: str) -> bool:
    """Say whether what is sent to a URL can be read and changed on its way: without TLS, to another machine.

    Example:
        >>> [is_readable(url) for url in ("http://10.0.0.7:8000", "http://localhost:8000", "https://10.0.0.7")]
        [True, False, False]
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False  # the code that opens it reports what is wrong with it
    return parts.scheme.lower() == "http" and not is_loopback(parts.netloc.rpartition("@")[2])


def is_of_aws(host: str) -> bool:
    """Say whether a host has a name that AWS gives."""
    return name_of(host).endswith(_OF_AWS)


def name_of(host: str) -> str:
    """Return the name or address of a host without its port, in lower case; empty if it has none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
