"""Names and texts as they stand in a statement, for what reads tables and for what writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable


_CONTINUED = re.compile(r"\\(?=\r?\n)")

# ---- names: their case and their blanks stay


def double_quoted(identifier: str) -> str:
    """Return a name as the SQL standard quotes it.

    Raises:
        OptionError: it is empty, or has a character that no name has.

    Example:
        >>> double_quoted('a"b c')
        '"a""b c"'
    """
    return _enclosed(identifier, '"', '"')


def backticked(identifier: str) -> str:
    """Return a name as MySQL quotes it; see `double_quoted`.

    Example:
        >>> backticked("a`b")
        '`a``b`'
    """
    return _enclosed(identifier, "`", "`")


def bracketed(identifier: str) -> str:
    """Return a name as SQL Server quotes it, whatever QUOTED_IDENTIFIER is; see `double_quoted`.

    Example:
        >>> bracketed("a]b")
        '[a]]b]'
    """
    return _enclosed(identifier, "[", "]")


def _enclosed(identifier: str, begin: str, end: str) -> str:
    if not identifier or "\0" in identifier:
        raise OptionError(f"{identifier!r} can't be a name in a database. Nothing was read, written or changed.")
    return f"{begin}{identifier.replace(end, end * 2)}{end}"


# ---- texts, which mean the same whatever a session says of backslashes


def plain_text(value: str) -> str:
    """Return a literal of text where a backslash is a letter like others.

    Example:
        >>> plain_text("it's")
        "'it''s'"
    """
    doubled = value.replace("'", "''")
    return f"'{doubled}'"


def escaped_text(value: str) -> str:
    r"""Return a literal of text for PostgreSQL, whatever `standard_conforming_strings` is.

    Example:
        >>> escaped_text("it's"), escaped_text("a\\b")
        ("'it''s'", " E'a\\\\b'")
    """
    quoted_text = plain_text(value)
    return " E" + quoted_text.replace("\\", "\\\\") if "\\" in value else quoted_text


def hexadecimal_text(value: str) -> str:
    r"""Return a literal of text for MySQL, whatever its `sql_mode` says of a backslash.

    Example:
        >>> hexadecimal_text("it's"), hexadecimal_text("\\é")
        ("'it''s'", '_utf8mb4 0x5cc3a9')
    """
    return f"_utf8mb4 0x{value.encode().hex()}" if "\\" in value else plain_text(value)


def national_text(value: str) -> str:
    r"""Return a literal of text for SQL Server, which would take a backslash before the end of a line for no letter.

    Example:
        >>> national_text("it's"), national_text("a\\\nb")
        ("N'it''s'", "N'a\\' + N'\nb'")
    """
    return "N" + _CONTINUED.sub(r"\\' + N'", plain_text(value))


def spelled_text(value: str) -> str:
    r"""Return a literal of text for Redshift, where a backslash may escape: it stands by its number.

    Example:
        >>> spelled_text("it's"), spelled_text("a\\b")
        ("'it''s'", "('a' || CHR(92) || 'b')")
    """
    parts = " || CHR(92) || ".join(map(plain_text, value.split("\\")))
    return f"({parts})" if "\\" in value else parts


# ---- by the name of the dialect, for what writes tables

_NAMES: dict[str, Callable[[str], str]] = {"mysql": backticked, "mariadb": backticked}
_TEXTS: dict[str, Callable[[str], str]] = {
    "postgresql": escaped_text,
    "mysql": hexadecimal_text,
    "mariadb": hexadecimal_text,
}


def is_mysql(dialect: str) -> bool:
    """Whether a database is MySQL or MariaDB, which share what is said of either."""
    return dialect in ("mysql", "mariadb")


def quoted(dialect: str, identifier: str) -> str:
    """Return the name of a table or column, quoted; see `double_quoted`."""
    return _NAMES.get(dialect, double_quoted)(identifier)


def text_literal(dialect: str, text: str) -> str:
    """Return a text as a literal."""
    return _TEXTS.get(dialect, plain_text)(text)
