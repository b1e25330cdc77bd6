"""What a run read, and how: stored with its plan, so that a look without the script reads the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.rules.shard import TableShard
from airflow_bookmarks.sources.jdbc.options import TableOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.core.selection.bound import Bound

_DIGITS = 12  # of the hash that tells one query from another


@dataclass(frozen=True, slots=True)
class Relation:
    """What is read: a table by the parts of its name, or a query."""

    parts: tuple[str, ...] | None = None
    query: str | None = None

    def sql(self, dialect: Dialect) -> str:
        """Return it as it stands after FROM. A query may end with a comment, up to the end of its line."""
        return dialect.table(self.parts) if self.parts is not None else f"({self.query}\n) source_query"

    @property
    def name(self) -> str:
        """What people call it: the name of the table, or of a query the first digits of its hash."""
        if self.parts is not None:
            return ".".join(self.parts)
        return f"query {hashlib.sha256((self.query or '').encode()).hexdigest()[:_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """A relation of a database, and how it is read. `address` names the database, and tells no secret.

    `shard` None: all rows are read.
    """

    address: str
    dialect: str
    relation: Relation
    options: TableOptions
    shard: TableShard | None = None

    def bounded(self, bound: Bound) -> Recipe:
        """Return it with another bound."""
        return replace(self, options=replace(self.options, bound=bound))

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        parts = self.relation.parts
        return {
            "address": self.address,
            "dialect": self.dialect,
            "table": None if parts is None else list(parts),
            "query": self.relation.query,
            "options": self.options.stored(),
            "shard": None if self.shard is None else [self.shard.number, self.shard.column],
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> Recipe:
        """Return what `stored` returned."""
        parts = values["table"]
        relation = Relation(None if parts is None else tuple(parts), values["query"])
        shard = values.get("shard")
        return cls(
            values["address"],
            values["dialect"],
            relation,
            TableOptions.of_stored(values["options"]),
            None if shard is None else TableShard(*shard),
        )
