"""Scripts: restrict the characters of new names, so that no two different names look alike.

A name is in the one form of Unicode that equal looks share (NFKC), and in one script: a Cyrillic letter among Latin
ones goes unnoticed. Latin beside Chinese, Japanese or Korean can be told apart: "highly restrictive" in the words of
UTS 39.
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
# Modifier letters that words are spelled with; others look like signs (U+02CD like `_`).
_SPELLED = frozenset("\u02b9\u02bb\u02bc\u02ec")


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


def _is_unclear(letter: str) -> bool:
    """Whether a letter may be blank or be taken for a sign: alone, parts of Korean syllables are (U+1160, U+1173)."""
    if letter.isascii() or letter in _SPELLED:
        return False
    name = unicodedata.name(letter, "")
    return name.startswith(("HANGUL CHOSEONG", "HANGUL JUNGSEONG", "HANGUL JONGSEONG", "MODIFIER LETTER"))


def why_not_new(name: str, *, ascii_only: bool = False) -> str | None:
    """Return why a name can't be given to something new; None if it can.

    It may look like another name; or, with `ascii_only`, it has a character outside of ASCII.
    """
    if ascii_only and not name.isascii():
        first = next(letter for letter in name if not letter.isascii())
        return f"it has {first!r} (U+{ord(first):04X}), and names=ascii of the store takes nothing outside of ASCII"
    why = _why_a_look_alike(name)
    return None if why is None else f"{why}, so it may be taken for another name"


def _why_a_look_alike(name: str) -> str | None:
    normal = unicodedata.normalize("NFKC", name)
    if normal != name:
        return f"it is not in the normal form of Unicode (NFKC), in which it is {normal!r}"
    unclear = next(filter(_is_unclear, name), None)
    if unclear is not None:
        return f"{unicodedata.name(unclear)} (U+{ord(unclear):04X}) in it is not shown, or looks like a sign"
    scripts = scripts_of(name)
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        return f"it mixes letters of {' and '.join(script.capitalize() for script in sorted(scripts))}"
    return None


def check_new_name(kind: str, name: str, *, ascii_only: bool) -> str:
    """Return `name` if it can be the name of a new `kind` (job, context, output, namespace).

    Raises:
        NameInvalidError: it can't be a name at all, may look like another one, or is not in ASCII where it has to be.
    """
    why = why_not_new(check_name(kind, name), ascii_only=ascii_only)
    if why is not None:
        mend = "Write it in ASCII." if ascii_only else "Write it in one script."
        raise NameInvalidError(
            f"{name!r} ({name!a}) is no name for a new {kind}: {why}. Nothing was read or changed. {mend}"
        )
    return name
