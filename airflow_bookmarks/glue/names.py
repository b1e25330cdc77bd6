"""Write any text as a name that the runtime allows, and back.

Glue's jobs and contexts may hold spaces, slashes and any sign. What `check_name` refuses, and `~` itself, becomes `~XX`
for each of its bytes in UTF-8; so two texts never share a name. A text that is too long for a name keeps its beginning,
and `~~` with a hash of the whole stands for the rest.
"""

from __future__ import annotations

import hashlib
import re

from airflow_bookmarks.core.job import check_name

_KEPT = re.compile(r"[\w.-]")
_ESCAPED = re.compile(rb"~([0-9A-F]{2})")
_LONGEST_BYTES = 250
_HASH_DIGITS = 16
_CUT = "~~"


def name_of(kind: str, text: str) -> str:
    """Return the name that stands for a text.

    Args:
        kind: what is named, for the error: "job", "context", "output".
        text: any text that is not empty.

    Raises:
        NameInvalidError: the text is empty.

    Example:
        >>> name_of("job", "nightly orders/eu"), name_of("context", "datasource0")
        ('nightly~20orders~2Feu', 'datasource0')
    """
    if not text:
        return check_name(kind, text)
    name = "".join(letter if _KEPT.fullmatch(letter) else _escaped(letter) for letter in text)
    if name.startswith("."):
        name = _escaped(".") + name[1:]
    return check_name(kind, name if len(name.encode()) <= _LONGEST_BYTES else _cut(name))


def text_of(name: str) -> str:
    """Return the text that a name stands for, as people know it; of a text that was too long, its beginning.

    Example:
        >>> text_of("nightly~20orders~2Feu")
        'nightly orders/eu'
    """
    shown, cut, _ = name.partition(_CUT)
    text = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), shown.encode()).decode(errors="replace")
    return f"{text}..." if cut else text


def _escaped(letter: str) -> str:
    return "".join(f"~{byte:02X}" for byte in letter.encode(errors="surrogatepass"))


def _cut(name: str) -> str:
    end = _CUT + hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]
    beginning = name.encode()[: _LONGEST_BYTES - len(end)].decode(errors="ignore")
    return re.sub(r"~[0-9A-F]?$", "", beginning) + end
