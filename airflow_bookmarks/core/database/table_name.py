"""Names of tables as people write them: `orders`, `public.orders`, `"Sales 2013"."Order Lines"`."""

from __future__ import annotations

import re

from airflow_bookmarks.core.errors import OptionError

_MOST_PARTS = 3  # catalog, schema, table
_PART = re.compile(r"""\s*(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|\[([^\]]+)\]|([^\s".`\[\]()';]+))\s*(?:\.|$)""")


def parse_table(text: str, most: int = _MOST_PARTS) -> tuple[str, ...]:
    r"""Return the parts of the name of a table, without quotes; a name without quotes is taken letter by letter.

    Raises:
        OptionError: it is no name of a table.

    Example:
        >>> parse_table("public.orders"), parse_table('public."Order Lines"')
        (('public', 'orders'), ('public', 'Order Lines'))
    """
    parts, at = [], 0
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            break
        quoted, ticked, bracketed, bare = found.groups()
        parts.append(
            quoted.replace('""', '"') if quoted else ticked.replace("``", "`") if ticked else bracketed or bare
        )
        at = found.end()
    if at < len(text) or not parts or len(parts) > most or text.rstrip().endswith("."):
        raise OptionError(
            f"{text!r} is no name of a table. Nothing was read, written or changed. Write it as 'orders', "
            "'public.orders' or 'public.\"Order Lines\"'; a query is given as query=..."
        )
    return tuple(parts)
