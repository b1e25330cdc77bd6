"""Write any text as a name that the runtime allows, and back; and name the outputs of a run.

Glue's jobs and contexts may hold spaces, slashes and any sign. What `check_name` refuses, and `~` itself, becomes `~XX`
for each of its bytes in UTF-8; so two texts never share a name. A text that is too long for a name keeps its beginning,
and `~~` with a hash of the whole stands for the rest.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Protocol

from airflow_bookmarks.core.job import check_name

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT = re.compile(r"[\w.-]")
_ESCAPED = re.compile(rb"~([0-9A-F]{2})")
_LONGEST_BYTES = 250
_HASH_DIGITS = 16
_CUT = "~~"
# So many targets that share a name are kept, the newest: of a path with a date in it there is another each day.
_MOST_SHARED = 500
_TARGET_DIGITS = 8


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


class KeptValue(Protocol):
    """A JSON value that a job keeps from run to run, as `BookmarkedJob.state` returns it."""

    def get(self, default: Any = None) -> Any:
        """Return the value; `default` if there is none."""
        ...

    def set(self, value: Any) -> None:
        """Set the value that the commit stores."""
        ...


class OutputNames:
    """The names of the outputs of a run: that of the transformation_ctx, else the last part of the target.

    Of targets with one such name the first that is ever written has it, and others have a hash of the target behind
    it, in later runs as well: in a run with nothing new for one of them, the next would else be taken for it.

    Args:
        kept: returns what the job keeps of targets that share a name; None in a run that moves no bookmark.
        warn: logs a warning.
    """

    def __init__(self, kept: Callable[[], KeptValue | None], warn: Callable[[str], None]) -> None:
        self._kept, self._warn = kept, warn
        self._targets: dict[str, str] = {}

    @property
    def given(self) -> tuple[str, ...]:
        """The names so far."""
        return tuple(self._targets)

    def clear(self) -> None:
        """Begin anew, with another run."""
        self._targets.clear()

    def of(self, ctx: str, target: str) -> str:
        """Return the name of an output, the same each time that it is asked."""
        text = ctx or target.rstrip("/").rpartition("/")[2] or "output"
        name = name_of("output", text)
        digits = hashlib.sha256(target.encode()).hexdigest()[:_TARGET_DIGITS]
        own = name_of("output", f"{text}-{digits}")
        if own in self._targets:
            return own
        if self._targets.get(name) == target:
            return name
        kept = self._kept()
        shared = [] if kept is None else kept.get([])
        mark = hashlib.sha256(own.encode()).hexdigest()[:_TARGET_DIGITS]
        if mark not in shared and name not in self._targets:
            self._targets[name] = target
            return name
        self._targets[own] = target
        if kept is not None and mark not in shared:
            kept.set([*shared, mark][-_MOST_SHARED:])
            self._warn(
                f"two targets are written as the output {name!r}: {target} is {own!r}, now and in later runs. Jobs "
                "that read the output by its name read the other: give each write a transformation_ctx of its own"
            )
        return own
