"""The bookmark option of a run: enable, pause or disable, and the window of a pause run.

Follows AWS Glue's `--job-bookmark-option` (spellings included), except that an unknown value is an error here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, get_args

from airflow_bookmarks.core.errors import OptionError

_GLUE_PREFIX = "job-bookmark-"

OnUnused = Literal["warn", "error", "ignore"]  # of a context that was read, and that no action has used
OnPartial = Literal["error", "ask"]  # of a second output of a run that commits by itself
Settlement = Literal["committed", "given-up"]  # what a person lets a run be that has landed in some of its tables only


class Option(StrEnum):
    """What a run does with the bookmark."""

    ENABLE = "enable"
    PAUSE = "pause"
    DISABLE = "disable"

    @classmethod
    def parse(cls, text: str) -> Option:
        """Return the option that `text` names.

        Example:
            >>> Option.parse("job-bookmark-pause")
            <Option.PAUSE: 'pause'>

        Raises:
            OptionError: for anything but the three names, with or without Glue's prefix.
        """
        for option in cls:
            if text in (option.value, _GLUE_PREFIX + option.value):
                return option
        valid = ", ".join(repr(o.value) for o in cls)
        raise OptionError(
            f"unknown bookmark option {text!r}; valid are {valid}, or the same with the prefix {_GLUE_PREFIX!r}. "
            "Nothing was read or changed."
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The option of a run with its window: (state after `from_run`, state after `to_run`], a pause run's only.

    `from_run` and `to_run` are run ids, or run numbers in decimal digits.
    """

    option: Option = Option.ENABLE
    from_run: str | None = None
    to_run: str | None = None

    @classmethod
    def of(cls, option: Option | str, from_run: str | None = None, to_run: str | None = None) -> Choice:
        """Check the three together.

        Raises:
            OptionError: unknown option; half a range; a range with enable or disable.
        """
        parsed = option if isinstance(option, Option) else Option.parse(option)
        from_run, to_run = from_run or None, to_run or None
        if (from_run is None) != (to_run is None):
            given, missing = ("from", "to") if from_run else ("to", "from")
            raise OptionError(
                f"half a range: {given!r} is given and {missing!r} is not. A pause run takes both or none. "
                "Nothing was read or changed."
            )
        if from_run is not None and parsed is not Option.PAUSE:
            raise OptionError(
                f"'from' and 'to' go with the option 'pause' only, not with {parsed.value!r}. Nothing was read or "
                "changed."
            )
        return cls(parsed, from_run, to_run)


def check_choice(name: str, value: str, choices: Any) -> None:
    """Make sure that `value` is one of a Literal's choices.

    Raises:
        OptionError: it is none of them.
    """
    if value not in get_args(choices):
        valid = ", ".join(repr(v) for v in get_args(choices))
        raise OptionError(f"{name}={value!r}: expected one of {valid}. Nothing was read or changed.")
