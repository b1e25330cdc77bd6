"""`job.state`: JSON values (a token, a cursor, counters) that a job keeps beside its positions.

All values of a job are one JSON object, from names to values. It is stored as the position of a context that no user
can name, so a commit, rewind, reset or undo treats it like every position:

    {"cursor": "2013-01-31", "counters": {"pages": 3}}
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, StateCorruptError

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE_KIND = "state"
SET_STATE = "set-state"  # the kind of a change
STATE_CONTEXT = ".state"  # `check_name` allows no dot in front, so no context of a user has this name
MAX_STATE_BYTES = 16_384
SHOWN_LETTERS = 200  # of a value, where it is shown
HIDDEN = "(hidden)"
MAX_STATE_LEVELS = 100  # of lists and dicts within each other; JSON is read by recursion, from any depth of the stack


def encode_states(values: Mapping[str, Any]) -> bytes:
    """Return the values as stored: names in alphabetical order, ASCII."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def decode_states(body: bytes) -> dict[str, Any]:
    """Return the values that `encode_states` wrote.

    Raises:
        StateCorruptError: it is something else.
    """
    try:
        if len(body) > MAX_STATE_BYTES:
            raise ValueError(f"it has {len(body):,} bytes, and {MAX_STATE_BYTES:,} is the most")
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise StateCorruptError(f"the stored job.state can't be read ({error}); nothing was changed") from error
    if not isinstance(values, dict):
        raise StateCorruptError("the stored job.state is no JSON object; nothing was changed")
    return values


def with_state(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return `values` with one set to a copy of `value`; None removes it.

    Raises:
        OptionError: it is no JSON value, or all values together have more than 16 KB.
    """
    after = {other: kept for other, kept in values.items() if other != name}
    if value is None:
        return after
    after[name] = _copied(name, value)
    size = len(encode_states(after))
    if size > MAX_STATE_BYTES:
        raise OptionError(
            f"state {name!r}: all values of job.state together would have {size:,} bytes of JSON, and "
            f"{MAX_STATE_BYTES:,} is the most. The value is as before. Keep a cursor here, and data in an output."
        )
    return after


def parse_state(name: str, text: str) -> Any:
    """Return the value in a JSON text of the command line, a request or the page.

    Raises:
        OptionError: it is no JSON, or holds half a character (a lone surrogate).
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()  # of half a character no text can be made, and none be shown
        return value
    except (ValueError, RecursionError) as error:
        raise OptionError(
            f"state {name!r}: {short(text)!r} is no JSON ({error}). Nothing was changed. Text takes its quotes along: "
            '\'"2013-01-31"\'; other values are 7, true, [1, 2], {"page": 3}; null removes the value.'
        ) from error


def state_text(name: str, value: Any) -> str:
    """Return a value as the JSON text that `parse_state` reads.

    Raises:
        OptionError: it is no JSON value.
    """
    return json.dumps(_copied(name, value), ensure_ascii=False, allow_nan=False)


def shown_states(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values as JSON texts for people; a long one is cut, and ends in a mark that tells it from others.

    Example:
        >>> shown_states({"cursor": "2013-01-31", "pages": [1, 2]})
        {'cursor': '"2013-01-31"', 'pages': '[1, 2]'}
    """
    return {
        _shown(name): short(_shown(json.dumps(value, ensure_ascii=False))) for name, value in sorted(values.items())
    }


def _shown(text: str) -> str:
    # Half a character is no text that UTF-8 can write; JSON may hold one as an escape.
    return text.encode("utf-8", "backslashreplace").decode()


def short(text: str) -> str:
    """Return a text, cut if it is long, with its length and a hash."""
    if len(text) <= SHOWN_LETTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[:SHOWN_LETTERS]}... ({len(text):,} letters, sha256 {digest}...)"


def hidden(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return a view of a job (`bookmark`, a preview, a request, a difference) without the values of its state.

    The names stay, and a missing value stays None.
    """
    after = {name: _covered(shown[name]) for name in ("state", "states") if isinstance(shown.get(name), dict)}
    preview, change = shown.get("preview"), shown.get("change")
    if isinstance(preview, dict):
        after["preview"] = hidden(preview)
    if isinstance(change, dict) and change.get("kind") == SET_STATE:
        after["change"] = {**change, "value": HIDDEN}
    if isinstance(shown.get("by_shard"), dict):
        after["by_shard"] = {shard: hidden(each) for shard, each in shown["by_shard"].items()}
    return {**shown, **after}


def _covered(shown: Any) -> Any:
    if isinstance(shown, dict):
        return {name: _covered(value) for name, value in shown.items()}
    return None if shown is None else HIDDEN


def _copied(name: str, value: Any) -> Any:
    """Return what a later run will read, so that it is the same in this one, and no later change of `value` counts."""
    if _is_deeper(value, MAX_STATE_LEVELS):
        raise _no_json(name, f"lists and dicts lie in more than {MAX_STATE_LEVELS} levels within each other")
    try:
        copy = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise _no_json(name, str(error)) from error
    if copy != value:
        raise _no_json(name, "it would come back as another value; a tuple as a list, a key that is no text as text")
    return copy


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _no_json(name: str, why: str) -> OptionError:
    return OptionError(
        f"state {name!r}: the value is no JSON value: {why}. The value is as before. Use text, finite numbers, True, "
        "False, None, lists, and dicts with keys of text; a time as its ISO text."
    )
