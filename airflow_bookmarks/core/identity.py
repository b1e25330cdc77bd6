"""Identities: who asks for something, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody, by name.

    Args:
        name: as whoever vouches for it writes it, e.g. the ARN of an AWS caller or the name of a user.
        is_authenticated: whether somebody else than the person vouches for the name.
        kind: who does: "aws" (caller identity), "os" (user of the operating system), "airflow" (logged-in user).
    """

    name: str
    is_authenticated: bool
    kind: str

    def is_same(self, other: Identity) -> bool:
        """Whether both may be one person: whoever vouches for it, a name is taken for that of the same one."""
        return self.name.casefold() == other.name.casefold()
