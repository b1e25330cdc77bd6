"""The forms of JDBC URLs: what stands between host, database and parameters differs from vendor to vendor.

jdbc:postgresql://HOST:5432/DATABASE?name=value&name=value      and mysql, mariadb, redshift, dialects of one's own
jdbc:sqlserver://HOST:1433;databaseName=DATABASE;name=value
jdbc:oracle:thin:@//HOST:1521/SERVICE?name=value&name=value
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.database.dialect import DialectName

_DATABASE = ("databasename", "database")  # what SQL Server calls the name of the database, in any case of letters


@dataclass(frozen=True, slots=True)
class UrlForm:
    """How the URLs of a kind of database are written.

    `is_encoded`: its driver reads %XX; those of the others take each letter as it is. `port` None: it has to be named.
    """

    port: int | None = None
    is_encoded: bool = False
    host: str = "//"
    database: str = "/"
    parameters: str = "?"
    between: str = "&"

    def written(self, dialect: DialectName, place: str, database: str) -> str:
        """Return the URL of a place (host and port) and a database, without parameters.

        Example:
            >>> form_of("oracle").written("oracle", "db:1521", "crm"), form_of("mysql").written("mysql", "db:1", "a/b")
            ('jdbc:oracle:thin:@//db:1521/crm', 'jdbc:mysql://db:1/a%2Fb')
        """
        name = quote(database, safe="") if self.is_encoded else database
        return f"jdbc:{dialect}:{self.host}{place}{self.database}{name}"

    def joined(self, parameters: Iterable[tuple[str, str]]) -> str:
        """Return parameters as they follow in the URL."""
        pairs = [
            f"{quote(name, safe='/:,')}={quote(value, safe='/:,')}" if self.is_encoded else f"{name}={value}"
            for name, value in parameters
        ]
        return f"{self.parameters}{self.between.join(pairs)}" if pairs else ""


_PLAIN = UrlForm()
_FORMS: Mapping[DialectName, UrlForm] = {
    "postgresql": UrlForm(5432, is_encoded=True),
    "mysql": UrlForm(3306, is_encoded=True),
    "mariadb": UrlForm(3306),
    "redshift": UrlForm(5439),
    "sqlserver": UrlForm(1433, database=";databaseName=", parameters=";", between=";"),
    "oracle": UrlForm(1521, host="thin:@//"),
}


def form_of(dialect: DialectName) -> UrlForm:
    """Return how the URLs of a kind of database are written: a dialect of one's own has the plain form."""
    return _FORMS.get(dialect, _PLAIN)


def general_form(url: str) -> str:
    """Return a URL in the form `sqlserver://HOST:PORT/DATABASE?name=value`, which `urlsplit` reads.

    Args:
        url: what follows `jdbc:`.

    Raises:
        ValueError: it has not the form of its vendor; the text says which that is, and nothing of the URL.

    Example:
        >>> general_form("sqlserver://db:1433;databaseName=crm;encrypt=true")
        'sqlserver://db:1433/crm?encrypt=true'
        >>> general_form("oracle:thin:@//db:1521/crm"), general_form("mariadb://db/crm")
        ('oracle://db:1521/crm', 'mariadb://db/crm')
    """
    if url.startswith("sqlserver:"):
        return _of_sqlserver(url)
    if url.startswith("oracle:"):
        return _of_oracle(url)
    return url


def _of_sqlserver(url: str) -> str:
    place, *given = url.split(";")
    pairs = [(name, value) for name, _, value in (each.partition("=") for each in given) if name]
    names = [value for name, value in pairs if name.lower() in _DATABASE]
    if len(names) != 1 or "/" in names[0] or "{" in url or "?" in url or "\\" in url:
        raise ValueError("jdbc:sqlserver://HOST:PORT;databaseName=DATABASE;name=value, without braces or instances")
    rest = "&".join(f"{name}={value}" for name, value in pairs if name.lower() not in _DATABASE)
    return f"{place}/{names[0]}?{rest}" if rest else f"{place}/{names[0]}"


def _of_oracle(url: str) -> str:
    login, at, place = url.removeprefix("oracle:").removeprefix("thin:").partition("@")
    place = place.removeprefix("//")
    if not url.startswith("oracle:thin:") or not at or "/" not in place:
        raise ValueError("jdbc:oracle:thin:@//HOST:PORT/SERVICE, by the name of a service")
    return f"oracle://{quote(login, safe='')}@{place}" if login else f"oracle://{place}"
