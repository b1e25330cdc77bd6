"""Scripts: what a new name may be written in, so that no two names look alike and are not the same.

A name is in the one form of Unicode that equal looks share (NFKC), and in one script: a Cyrillic letter among Latin
ones is not seen. Latin beside Chinese, Japanese or Korean is told apart: "highly restrictive" in the words of UTS 39.
"""

from __future__ import annotations

import unicodedata

from airflow_bookmarks.core.errors import NameInvalidError
from airflow_bookmarks.core.job import check_name

_COMMON = "COMMON"
_TOGETHER = (
    frozenset(["LATIN", "HAN", "HIRAGANA", "KATAKANA"]),
    frozenset(["LATIN", "HAN", "HANGUL"]),
    frozenset(["LATIN", "HAN", "BOPOMOFO"]),
)
# Python knows no property of scripts; the name of a letter begins with that of its script, but for these.
_SCRIPT_OF = {
    "CJK": "HAN",
    "IDEOGRAPHIC": "HAN",
    "KATAKANA-HIRAGANA": "KATAKANA",
    "ARABIC-INDIC": "ARABIC",
    "EXTENDED": "ARABIC",
    "MODIFIER": _COMMON,
}


def scripts_of(name: str) -> frozenset[str]:
    """Return the scripts that a name is written in; digits and signs that all share are of none.

    Example:
        >>> sorted(scripts_of("flights_2013")), sorted(scripts_of("fl\u0456ghts"))
        (['LATIN'], ['CYRILLIC', 'LATIN'])
    """
    return frozenset(map(_script, name)) - {_COMMON}


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN" if letter.isalpha() else _COMMON
    first = unicodedata.name(letter, f"UNKNOWN-{ord(letter):x}").partition(" ")[0]
    return _SCRIPT_OF.get(first, first)


def why_not_new(name: str) -> str | None:
    """Return why a name may look like another one; None where it can be given to something new."""
    normal = unicodedata.normalize("NFKC", name)
    if normal != name:
        return f"it is not in the normal form of Unicode (NFKC), in which it is {normal!r}"
    scripts = scripts_of(name)
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        return f"it mixes letters of {' and '.join(script.capitalize() for script in sorted(scripts))}"
    return None


def check_new_name(kind: str, name: str) -> str:
    """Return `name` if it can be the name of a new `kind` (job, context, output, namespace).

    Raises:
        NameInvalidError: it can't be a name at all, or may look like another one.
    """
    why = why_not_new(check_name(kind, name))
    if why is not None:
        raise NameInvalidError(
            f"{name!r} ({name!a}) is no name for a new {kind}: {why}, so it may be taken for another name. Nothing "
            "was read or changed. Write it in one script."
        )
    return name
