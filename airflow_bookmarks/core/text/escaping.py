"""Foreign text: escape it where a terminal or a log shows it, refuse it where a person types it.

This concerns characters that are invisible and that a terminal obeys: controls (escape sequences, new lines), format
characters (among them those that turn the direction of writing), separators of lines and paragraphs, and surrogates.
"""

from __future__ import annotations

import unicodedata

from airflow_bookmarks.core.errors import OptionError

_OBEYED = frozenset(["Cc", "Cf", "Zl", "Zp", "Cs"])
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NO_WIDTH = frozenset(["Mn", "Me"])


def is_obeyed(letter: str) -> bool:
    """Whether a terminal may obey a character instead of showing it."""
    return unicodedata.category(letter) in _OBEYED


def escaped(text: str, keep: str = "") -> str:
    r"""Return `text` with each character that a terminal may obey written out; those of `keep` stay.

    Example:
        >>> print(escaped("a\x1b[2J\u202eb"))
        a\x1b[2J\u202eb
    """
    if text.isprintable():
        return text
    return "".join(_escape(letter) if is_obeyed(letter) and letter not in keep else letter for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    long = f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
    return _SHORT.get(letter, f"\\x{code:02x}" if code <= 0xFF else long)


def in_lines(text: str) -> str:
    """Return a text of several lines for a log: escaped, and set in from the second line on, like no other entry."""
    return escaped(text.replace("\r\n", "\n"), keep="\n\t").replace("\n", "\n    ")


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for a wide letter, none for a mark on the letter before.

    Example:
        >>> width("abc"), width("東京"), width("e\u0301")
        (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1


def check_typed_text(what: str, text: str) -> None:
    """Make sure that a text which a person types is shown as it is, by whatever shows it.

    Raises:
        OptionError: a character of it is a control, a format character or a separator of lines.
    """
    found = next((at for at, letter in enumerate(text) if is_obeyed(letter)), None)
    if found is not None:
        raise OptionError(
            f"{what} has a character that is not shown, {escaped(text[found])!s} (U+{ord(text[found]):04X}), at place "
            f"{found + 1}: a new line, another control or a format character. Nothing was changed. Leave it out."
        )
