"""The id under which a run stages a snapshot. Iceberg brings a snapshot into a table once for each id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.run import RunKey

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.territory import Territory

_OURS = "airflow_bookmarks"


def prefix_of(territory: Territory) -> str:
    """Return what the ids of all runs of a job begin with.

    Example:
        >>> from airflow_bookmarks.core.rules.territory import Territory
        >>> prefix_of(Territory("prod", "shop.clean"))
        'airflow_bookmarks/prod/shop.clean/'
    """
    return f"{_OURS}/{territory.namespace}/{territory.job}/"


@dataclass(frozen=True, slots=True)
class WapId:
    """The id of what one run item stages for one output: as Iceberg stores it in `wap.id`, and as the tag is named.

    Example:
        >>> from airflow_bookmarks.core.rules.territory import Territory
        >>> str(WapId(Territory("prod", "clean"), RunKey(3, 7), "orders"))
        'airflow_bookmarks/prod/clean/3.7/orders'
    """

    territory: Territory
    key: RunKey
    output: str

    @classmethod
    def parse(cls, text: str, territory: Territory) -> Self | None:
        """Return the id of a run of this job that `str` wrote; None for any other."""
        start = prefix_of(territory)
        key, _, output = text.removeprefix(start).partition("/")
        try:
            found = cls(territory, RunKey.parse(key), output)
        except ValueError:
            return None
        return found if str(found) == text else None

    def __str__(self) -> str:
        return f"{prefix_of(self.territory)}{self.key}/{self.output}"
