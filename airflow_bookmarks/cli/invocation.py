"""The command as it was typed, and the commands that messages name: as that person has to type them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

PROGRAM = "airflow-bookmarks"

_COMMAND = re.compile(rf"\b{PROGRAM} (?P<verb>[a-z][a-z-]*[a-z])(?P<store> --store [^\s']+)?")


@dataclass(frozen=True, slots=True)
class Invocation:
    """The command that was typed: its program, and the options by which it found its store (none: the default one).

    Example:
        >>> Invocation("airflow bookmarks", ("--conn-id", "dev")).hint("'airflow-bookmarks history clean' lists them.")
        "'airflow bookmarks history --conn-id dev clean' lists them."
    """

    program: str = PROGRAM
    options: tuple[str, ...] = ()

    def hint(self, text: str) -> str:
        """Return a message with each command in it as it has to be typed in this program, for the same store."""
        args = "".join(f" {shlex.quote(option)}" for option in self.options)
        # A message that names the store itself, such as that its file is gone, knows nothing of the program.
        return _COMMAND.sub(lambda found: f"{self.program} {found['verb']}{args or found['store'] or ''}", text)
