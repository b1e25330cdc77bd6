"""What a script gives in the dicts of a write, by Glue's names: taken one by one, and what is left is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.glue.run import GlueRun

_BOOLEANS = {"true": True, "false": False}


class GivenOptions:
    """The options of one call, in any case of their names; `warn_of_rest` names those that nobody has taken.

    Args:
        call: the call, for messages: "write_dynamic_frame.from_options".
        given: the dicts of the call, of which a later one counts more.
    """

    def __init__(self, call: str, *given: Mapping[str, Any] | None) -> None:
        self.call = call
        self._left: dict[str, Any] = {}
        self._spelled: dict[str, str] = {}
        for options in given:
            if options is not None and not hasattr(options, "items"):
                raise self.refused(f"options are a dict, and this is a {type(options).__name__}")
            for name, value in (options or {}).items():
                self._left[str(name).lower()] = value
                self._spelled[str(name).lower()] = str(name)

    def refused(self, why: str) -> OptionError:
        """Return the error about an option that can't be used."""
        return OptionError(f"{self.call}: {why}. Nothing was written or changed.")

    def take(self, *names: str, default: Any = None) -> Any:
        """Return the value of an option that has several names, the first that is given; `default` if none is."""
        found = [self._left.pop(name.lower()) for name in names if name.lower() in self._left]
        return found[0] if found and found[0] is not None else default

    def text(self, *names: str, default: str | None = None) -> str | None:
        """Return an option that is text.

        Raises:
            OptionError: it is something else.
        """
        value = self.take(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refused(f"{names[0]}={value!r}: expected text")
        return value

    def needed(self, *names: str) -> str:
        """Return an option that is text and has to be there.

        Raises:
            OptionError: it is not, or is empty.
        """
        value = self.text(*names)
        if not value:
            raise self.refused(f"{names[0]!r} is missing among the options")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return an option that is true or false, as a boolean or as text.

        Raises:
            OptionError: it is something else.
        """
        value = self.take(name)
        if value is None:
            return default
        flag = _BOOLEANS.get(str(value).lower())
        if flag is None:
            raise self.refused(f"{name}={value!r}: expected true or false")
        return flag

    def number(self, name: str, *, default: float | None = None, least: float = 0) -> float | None:
        """Return an option that is a number, as one or as text.

        Raises:
            OptionError: it is no number, or below `least`.
        """
        value = self.take(name)
        if value is None or value == "":
            return default
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not number >= least or isinstance(value, bool):
            raise self.refused(f"{name}={value!r}: expected a number, {least:g} or more")
        return number

    def names(self, name: str) -> tuple[str, ...]:
        """Return an option that is a list of names; one name counts as a list of it.

        Raises:
            OptionError: it is something else.
        """
        value = self.take(name, default=())
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not all(isinstance(each, str) and each for each in listed):
            raise self.refused(f"{name}={value!r}: expected a list of names")
        return tuple(listed)

    def ignore(self, *names: str) -> None:
        """Take options that change nothing here."""
        for name in names:
            self._left.pop(name.lower(), None)

    def rest(self) -> dict[str, Any]:
        """Return what nobody has taken, by its names as given."""
        return {self._spelled[name]: value for name, value in self._left.items()}

    def warn_of_rest(self, run: GlueRun) -> None:
        """Log the options that nobody has taken, once for each."""
        for name in self.rest():
            run.warn_once(f"{self.call}: the option {name!r} is not known, and has no effect")
