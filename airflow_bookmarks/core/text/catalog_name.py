"""Names of tables in a catalog, as SQL writes them: parts between dots, in backquotes where a part is no plain word."""

from __future__ import annotations

import re

from airflow_bookmarks.core.errors import OptionError

_PART = r"`(?:[^`]|``)+`|\w+"
_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")


def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of the name of a table as SQL writes it.

    Raises:
        OptionError: it is no name of a table.

    Example:
        >>> parts_of("lake.shop.orders"), parts_of("lake.`my.shop`.orders")
        (('lake', 'shop', 'orders'), ('lake', 'my.shop', 'orders'))
    """
    if _NAME.fullmatch(name) is None:
        raise OptionError(f"{name!r} is no name of a table, such as lake.shop.orders or lake.`my-shop`.orders")
    found = re.findall(_PART, name)
    return tuple(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in found)


def quoted(*parts: str) -> str:
    """Return a name as SQL writes it.

    Example:
        >>> quoted("lake", "my shop", "orders")
        '`lake`.`my shop`.`orders`'
    """
    doubled = (part.replace("`", "``") for part in parts)
    return ".".join(f"`{part}`" for part in doubled)
