"""The token under which a run writes to a Delta table, and the numbers by which Delta lets each token land once.

Delta keeps, per application id, the highest number that a commit has carried, and skips a write with that number or a
lower one. One output of a job is one application. Fences only grow, so numbers made of them do:

    fence   number of the burn   number of the write
      7            13                   14
      8            15                   16

The holder of fence 8 burns with 15: the write of fence 7 then comes too late, and its own write with 16 does not. With
one number for both its own write would be skipped. Delta skips in silence, so each commit also carries the text of its
token in the history of the table (`userMetadata`), and who wrote looks for it there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey

_OURS = "airflow_bookmarks"


def application_of(territory: Territory, output: str) -> str:
    """Return the application id of an output; names of jobs and outputs have no slash.

    Example:
        >>> from airflow_bookmarks.core.rules.territory import Territory
        >>> application_of(Territory("prod", "shop.clean"), "orders")
        'prod/shop.clean/orders'
    """
    return f"{territory.namespace}/{territory.job}/{output}"


def number_of_write(fence: int) -> int:
    """Return the number under which the holder of a fence writes."""
    return 2 * fence


def number_of_burn(fence: int) -> int:
    """Return the number under which the holder of a fence burns all lower ones: below that of its own write."""
    return 2 * fence - 1


@dataclass(frozen=True, slots=True)
class DeltaToken:
    """One token: `run` says which run item writes, or which pause or disable run, or what is burned.

    `application` and `number` are Delta's `txnAppId` and `txnVersion`; `str` is what the history of the table shows.
    """

    application: str
    number: int
    run: str

    @classmethod
    def of_run(cls, territory: Territory, output: str, key: RunKey) -> Self:
        """Return the token of an output of a run item."""
        return cls(application_of(territory, output), number_of_write(key.fence), f"run {key}")

    @classmethod
    def of_burn(cls, territory: Territory, output: str, fence: int) -> Self:
        """Return the token under which the holder of a fence burns."""
        return cls(application_of(territory, output), number_of_burn(fence), f"burned below fence {fence}")

    @classmethod
    def aside(cls, territory: Territory, output: str, run: str) -> Self:
        """Return the token of an output of a pause or disable run: an application of its own, which writes once."""
        return cls(f"{application_of(territory, output)}/{run}", 1, f"pause or disable run {run}")

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the token that `str` wrote; None if it is none."""
        try:
            value = json.loads(text)[_OURS]
            token = cls(value["application"], value["number"], value["run"])
        except (ValueError, KeyError, TypeError):
            return None
        return token if str(token) == text else None

    def __str__(self) -> str:
        value = {"application": self.application, "number": self.number, "run": self.run}
        return json.dumps({_OURS: value}, ensure_ascii=False)
