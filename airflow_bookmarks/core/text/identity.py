"""Identities: who makes a request, how that is known, and when two of them may be one person."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_ROLE_SESSION = re.compile(r"arn:[^:]*:sts::(?P<account>\d*):assumed-role/(?P<role>[^/]+)/(?P<session>.+)", re.DOTALL)
_FEDERATED = re.compile(r"arn:[^:]*:sts::(?P<account>\d*):federated-user/.*", re.DOTALL)
_LONG_TERM = re.compile(r"arn:[^:]*:iam::(?P<account>\d*):(root|user/.*)", re.DOTALL)
_IDENTITY_CENTER = "AWSReservedSSO_"


TOLD = "told"
"""The kind of a name that nobody vouches for: a program, or the person, said it."""


class Signature(str):
    """A name that signs an event, with how it is known (`kind`): as of an `Identity`, "task", or "told"."""

    __slots__ = ("kind",)
    kind: str

    def __new__(cls, name: str, kind: str) -> Self:
        """Return a name that is known in this way."""
        made = super().__new__(cls, name)
        made.kind = kind
        return made


def signed(who: str) -> dict[str, str]:
    """Return the author of an event. Plain text is what a program said.

    Example:
        >>> signed("ann"), signed(Identity("ann", True, "airflow").signature)
        ({'who': 'ann', 'who_kind': 'told'}, {'who': 'ann', 'who_kind': 'airflow'})
    """
    return {"who": str(who), "who_kind": who.kind if isinstance(who, Signature) else TOLD}


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

    @property
    def signature(self) -> Signature:
        """The name as it signs an event; its kind is TOLD unless it is authenticated."""
        return Signature(self.name, self.kind if self.is_authenticated else TOLD)

    def is_same(self, other: Identity) -> bool:
        """Whether both may be one person, judging by the names alone, whatever authenticated them."""
        return may_be_one_person(self.name, other.name)


def may_be_one_person(one: str, other: str) -> bool:
    """Decide whether two names may belong to one person, judging by the names. In doubt they may.

    An AWS caller chooses the session name of a role, so all sessions of a role are one person. IAM Identity Center sets
    it to the login, so its sessions are compared by that, whatever the permission set and account. A federated user has
    a name that an IAM user of the account (or its root) chose, so it may be any of these.

    Example:
        >>> role = "arn:aws:sts::111122223333:assumed-role/on-call/"
        >>> may_be_one_person(role + "ann", role + "bob")
        True
        >>> login = "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Operator_0a1b2c/"
        >>> may_be_one_person(login + "ann@example.com", login + "bob@example.com")
        False
    """
    if _person(one) == _person(other):
        return True
    return any(
        (federated := _FEDERATED.fullmatch(left)) is not None
        and (issuer := _FEDERATED.fullmatch(right) or _LONG_TERM.fullmatch(right)) is not None
        and federated["account"] == issuer["account"]
        for left, right in ((one, other), (other, one))
    )


def _person(name: str) -> str:
    """Return the part of a name that its bearer can't choose."""
    session = _ROLE_SESSION.fullmatch(name)
    if session is None:
        return name.casefold()
    if session["role"].startswith(_IDENTITY_CENTER):
        return session["session"].casefold()
    return name.removesuffix(f"/{session['session']}").casefold()
