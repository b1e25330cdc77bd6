"""Protect against cross-site requests: only the page itself may request a change, not another site that a user visits.

The login is a cookie, which a browser sends with requests from any site. Browsers name that site in headers that no
script can set; other clients send neither header and are let through, because they send only cookies that they were
given on purpose.
"""

from urllib.parse import urlsplit

from airflow.configuration import conf
from fastapi import Request

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.plugin.exception_handlers import ForbiddenError

_JSON = "application/json"


async def same_origin(request: Request) -> None:
    """Let a change through that the page requested as JSON; a dependency of every route that changes something.

    Raises:
        ForbiddenError: another site asked for it. OptionError: it is not JSON, which a form of another site could send
            without being asked by the browser first.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if (site is not None and site != "same-origin") or (origin is not None and _host(origin) not in _own(request)):
        raise ForbiddenError(
            f"this change was asked for by another site ({origin or site}). Nothing was changed. If it is Airflow's "
            "own page behind a proxy, set [api] base_url to the address that people see."
        )
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON:
        raise OptionError(f"a change is asked for as {_JSON}, and not as {kind or 'nothing'!r}. Nothing was changed.")


def _own(request: Request) -> set[str]:
    """Return the hosts under which users see this site: that of the request, and that of Airflow's configuration."""
    configured = conf.get("api", "base_url", fallback="") or ""
    return {_without_default_port(request.headers.get("host", "")), _host(configured)} - {""}


def _host(url: str) -> str:
    """Return host and port of an origin, without the scheme: TLS may end at a proxy. Empty for an invalid URL."""
    try:
        return _without_default_port(urlsplit(url).netloc)
    except ValueError:  # half an IPv6 address
        return ""


def _without_default_port(host: str) -> str:
    """Return a host as browsers write it, without the default port, which proxies may keep."""
    return host.lower().removesuffix(":443").removesuffix(":80")
