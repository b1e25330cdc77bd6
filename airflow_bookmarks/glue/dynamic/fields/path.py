"""Paths to fields as scripts write them: dots lead into structs, backticks quote, `[]` leads into an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow_bookmarks.glue.dynamic.choice import Steps


def steps_of(path: str) -> Steps:
    """Return the steps of a path.

    Args:
        path: such as "name.first", "`this.old.name`", "myList[].price"; a backtick in a name is written twice.

    Raises:
        OptionError: an empty name, or a backtick without its other.

    Example:
        >>> steps_of("myList[].`unit price`")
        ('myList', None, 'unit price')
    """
    steps: list[str | None] = []
    rest = path
    while True:
        name, rest = _name(path, rest)
        steps.append(name)
        while rest.startswith("[]"):
            steps.append(None)
            rest = rest[2:]
        if not rest:
            return tuple(steps)
        if not rest.startswith("."):
            raise _unreadable(path, f"{rest!r} follows the name {name!r}")
        rest = rest[1:]


def path_of(steps: Steps) -> str:
    """Return the path of steps, as a script would write it."""
    text = ""
    for step in steps:
        text += "[]" if step is None else f".{_written(step)}"
    return text.removeprefix(".")


def _written(name: str) -> str:
    plain = name and not any(sign in name for sign in ".`[]")
    return name if plain else "`" + name.replace("`", "``") + "`"


def _name(path: str, rest: str) -> tuple[str, str]:
    """Return the first name of what is left of a path, and what follows it."""
    if rest.startswith("`"):
        name, at = "", 1
        while True:
            end = rest.find("`", at)
            if end < 0:
                raise _unreadable(path, "a backtick lacks its other")
            name += rest[at:end]
            if rest[end : end + 2] != "``":
                return name, rest[end + 1 :]
            name, at = f"{name}`", end + 2
    end = min((at for at in (rest.find("."), rest.find("[]")) if at >= 0), default=len(rest))
    if end == 0:
        raise _unreadable(path, "a name in it is empty")
    return rest[:end], rest[end:]


def _unreadable(path: str, why: str) -> OptionError:
    return OptionError(
        f"the field path {path!r} can't be read: {why}. Nothing was read or changed. Separate names by dots, put a "
        "name that holds a dot in backticks, and lead into an array by []."
    )
