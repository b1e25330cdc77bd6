"""Where an output of tables is staged and what it goes to, in the texts that state keeps.

    target   <address>#<table>                       jdbc:postgresql://db:5432/crm#public.dim
    place    <stage table>                           public._bm_08f20d4142c75a55_12_15_e50fc7992e88
    root     <address>#<schema>/<namespace>/<job>    conn:crm#public/prod/orders.load

An address holds no `#` and no secret. Stage tables and the token table lie in one schema: that of `staging`, or that of
the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.database import publish_sql
from airflow_bookmarks.core.database.script import NO_SCRIPT, PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.database.upsert import DELETED, Upsert
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.metadata.known import value_of
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.address import DatabaseAddress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.database.dialect import DialectName
    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sinks.sink import StoredOutput

_KEYS, _ORDER_BY, _DELETES = "upsert_keys", "upsert_order_by", "upsert_deletes"
_BEFORE, _AFTER = "run_before", "run_after"
_ROOT_ITEM = "HEAD, staging"


@dataclass(frozen=True, slots=True)
class TableTarget:
    """The table that an output goes to, and how: `upsert` None appends its rows, or lets them replace all others.

    `script` are statements that its publish runs before and after.
    """

    address: DatabaseAddress
    table: SinkTable
    mode: Mode = Mode.APPEND
    upsert: Upsert | None = None
    script: PublishScript = NO_SCRIPT

    @classmethod
    def of_entry(cls, entry: OutputEntry) -> TableTarget:
        """Return what a stored output says.

        Raises:
            OptionError: it names no address or no table. StateCorruptError: what is stored with it has another type.
        """
        address, _, table = entry.target.partition("#")
        keys = tuple(value_of(entry.stats, _KEYS, ()))
        has_deletes = bool(value_of(entry.stats, _DELETES, default=False))
        upsert = Upsert(keys, tuple(value_of(entry.stats, _ORDER_BY, ())), has_deletes) if keys else None
        mode = Mode.APPEND if entry.metadata.is_append else Mode.OVERWRITE
        script = PublishScript(
            tuple(value_of(entry.stats, _BEFORE, ())),
            tuple(value_of(entry.stats, _AFTER, ())),
        )
        return cls(DatabaseAddress.parse(address), SinkTable.parse(table), mode, upsert, script)

    def __str__(self) -> str:
        return f"{self.address}#{self.table}"

    @property
    def replaces(self) -> bool:
        """Whether its publish changes or deletes rows that others may have written."""
        return self.upsert is not None or self.mode is not Mode.APPEND

    @property
    def is_overwritten(self) -> bool:
        """Whether its publish deletes all rows that are there."""
        return self.upsert is None and self.mode is not Mode.APPEND

    @property
    def removals(self) -> int:
        """How many of its `statements` remove rows that go whatever comes: the first ones."""
        return int(self.is_overwritten or (self.upsert is not None and self.upsert.has_deletes))

    @property
    def flag(self) -> str | None:
        """The column of the stage table that tells a delete set from the rows; None: there is no delete set."""
        return DELETED if self.upsert is not None and self.upsert.has_deletes else None

    def columns_of(self, staged: Sequence[str]) -> list[str]:
        """Return those columns of a stage table that go to the target."""
        return list(staged) if self.upsert is None else self.upsert.columns_of(staged)

    def creation(self, dialect: DialectName, new: SinkTable, stage: SinkTable, staged: Sequence[str]) -> list[str]:
        """Return the statements that make the target, or another table like it, from a stage table with its columns."""
        keys = () if self.upsert is None else self.upsert.keys
        return publish_sql.create_target(dialect, new, stage, self.columns_of(staged), keys, self.flag)

    def statements(
        self, dialect: DialectName, stage: SinkTable, columns: Sequence[str], *, rehearses: bool = False
    ) -> Sequence[str]:
        """Return the statements that bring the rows of a stage table into the target; to rehearse, it has to be empty.

        The last one inserts.
        """
        if self.upsert is not None:
            return self.upsert.statements(dialect, self.table, stage, columns, rehearses=rehearses)
        added = publish_sql.insert(dialect, self.table, stage, columns)
        if self.mode is Mode.APPEND:
            return [added]
        return [publish_sql.empty_table(dialect, self.table, rehearses=rehearses), added]

    def stats(self) -> Mapping[str, Any]:
        """Return what is stored with the output, which `of_entry` reads."""
        stats: dict[str, Any] = {"mode": self.mode.value}
        if self.upsert is not None:
            stats |= {_KEYS: list(self.upsert.keys), _ORDER_BY: list(self.upsert.order_by)}
            stats |= {_DELETES: True} if self.upsert.has_deletes else {}
        if self.script:
            stats |= {_BEFORE: list(self.script.before), _AFTER: list(self.script.after)}
        return stats


@dataclass(frozen=True, slots=True)
class StagePlace:
    """A stage table: where it lies, and what its name tells."""

    table: SinkTable
    name: StageName

    @classmethod
    def of(cls, schema: str | None, name: StageName) -> StagePlace:
        """Return the stage table of that name in a schema."""
        return cls(SinkTable(schema, str(name)), name)

    @classmethod
    def parse(cls, place: str) -> StagePlace | None:
        """Return what a stored place names; None if it is no stage table."""
        try:
            table = SinkTable.parse(place)
        except OptionError:
            return None
        name = StageName.parse(table.name)
        return None if name is None or name.is_loading else cls(table, name)

    @classmethod
    def of_output(cls, output: StoredOutput) -> StagePlace:
        """Return where a run has staged an output: under one of its own fences.

        Raises:
            OutOfBoundsError: state names another table.
        """
        place, run = cls.parse(output.entry.place), output.run
        own = {
            StageName.of(output.territory, RunKey(run.key.number, fence), output.name)
            for fence in (run.key.fence, *run.fences)
        }
        if place is None or place.name not in own:
            item = f"RUN {run.key}, output {output.name!r}"
            raise output.territory.refuse(item, output.entry.place, "it is no stage table of this output of the run")
        return place

    @property
    def loading(self) -> SinkTable:
        """The table while Spark loads it."""
        name = StageName(self.name.job, self.name.key, self.name.output, is_loading=True)
        return self.table.beside(str(name))


@dataclass(frozen=True, slots=True)
class StagingSchema:
    """The schema in which all runs of a job stage what they write to a database: the root that the head lists."""

    address: DatabaseAddress
    schema: str | None

    @classmethod
    def of_root(cls, territory: Territory, root: str) -> StagingSchema:
        """Return what a root of the job names.

        Raises:
            OutOfBoundsError: it is none of this job.
        """
        tail = f"/{territory.namespace}/{territory.job}"
        address, sign, schema = root.removesuffix(tail).partition("#")
        why = f"the tables in which this job stages are listed as <address>#<schema>{tail}"
        if not root.endswith(tail) or not sign:
            raise territory.refuse(_ROOT_ITEM, root, why)
        try:
            parsed = cls(DatabaseAddress.parse(address), SinkTable.parse(schema).name if schema else None)
        except OptionError as error:
            raise territory.refuse(_ROOT_ITEM, root, why) from error
        if parsed.root(territory) != root:
            raise territory.refuse(_ROOT_ITEM, root, why)
        return parsed

    def root(self, territory: Territory) -> str:
        """Return it as the head lists it.

        Example:
            >>> from airflow_bookmarks.core.rules.territory import Territory
            >>> StagingSchema(DatabaseAddress.parse("conn:crm"), "public").root(Territory("prod", "orders"))
            'conn:crm#public/prod/orders'
        """
        schema = "" if self.schema is None else SinkTable(None, self.schema)
        return f"{self.address}#{schema}/{territory.namespace}/{territory.job}"
