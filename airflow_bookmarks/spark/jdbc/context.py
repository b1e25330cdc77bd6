"""Plan and read a table or query of a database: `job.read(ctx).jdbc(...)`."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.table_name import parse_table
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.client import why_no_client
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.spark.contexts.columns import ContextFrames, settled
from airflow_bookmarks.spark.contexts.options import check_text
from airflow_bookmarks.spark.jdbc.queries import SparkQueries
from airflow_bookmarks.spark.jdbc.reader import TableReader, reading_properties, spark_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.core.database.windows.partitions import PartitionOptions
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.databases.login import DatabaseLogin
    from airflow_bookmarks.sources.jdbc.options import TableOptions
    from airflow_bookmarks.sources.jdbc.position import TablePlan
    from airflow_bookmarks.sources.jdbc.queries import Connect, Queries
    from airflow_bookmarks.spark.contexts.scope import ReadScope

log = logging.getLogger(__name__)

# Names of Spark's JDBC source, in small letters, by which more or less would be read than the plan says.
_REFUSED = {
    "url": "it is the first argument of .jdbc(...)",
    "dbtable": "give table=...",
    "query": "give query=...",
    "preparequery": "give query=...",
    "predicates": "the window of the bookmark is read; split it by partitions=...",
    "partitioncolumn": "give partition_column=...",
    "lowerbound": "the window of the bookmark has its own ends",
    "upperbound": "the window of the bookmark has its own ends",
    "numpartitions": "give partitions=...",
    "sessioninitstatement": "it could change the zone or the schema that the window is read in",
    "user": "the planner and a look without the script need the login too: give it to conn:<id>",
    "password": "the planner and a look without the script need the login too: give it to conn:<id>",
    "pushdownlimit": "it would bound a part; give max_rows=...",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReadOptions:
    """The keywords of `BookmarkedReader.jdbc`, which says what each of them does."""

    table: str | None
    query: str | None
    options: TableOptions
    partitions: PartitionOptions
    shard_by: str | None
    properties: Mapping[str, str]

    def __post_init__(self) -> None:
        check_text("shard_by", self.shard_by)

    @property
    def relation(self) -> Relation:
        """What is read.

        Raises:
            OptionError: both a table and a query are given, or neither.
        """
        if (self.table is None) is (self.query is None):
            raise OptionError("give one of table=... and query=... to .jdbc(...). Nothing was read or changed.")
        if self.table is not None:
            return Relation(parse_table(self.table))
        return Relation(query=(self.query or "").strip().rstrip(";"))


def read_table(scope: ReadScope, url: str, wanted: TableReadOptions) -> DataFrame:
    """Plan what is new in a table, store the plan, and return a frame over it.

    Raises:
        OptionError: an option that would open the window, or does not fit.
        SourceError: it can't be planned.
    """
    check_table_read(scope, wanted)
    address = DatabaseAddress.parse(url)
    login = scope.job.store.databases.login(address)
    bound = scope.share.bound
    options = wanted.options if not bound.is_given else replace(wanted.options, bound=_bound(scope, wanted))
    scope.options.check_ends(options.bound)
    shard = scope.share.table_shard(scope.ctx, wanted.shard_by)
    recipe = Recipe(str(address), login.dialect, wanted.relation, options, shard)
    if recipe.relation.parts is not None:  # what a query reads is not known
        scope.inputs.note_table(recipe.address, SinkTable.of_parts(recipe.relation.parts))
    reader = _reader(scope, login, recipe, wanted)
    source = TableSource(
        reader.connect, recipe, scope.label, scope.share.settlings, scope.share.loop, scope.run.execution_id
    )
    plan = scope.run.plan(scope.ctx, source, on_source_change=scope.options.on_source_change)
    if not plan.is_empty:
        _warn_of_parts(scope, wanted.partitions, [key.name for key in plan.leads_to.table.keys])
    return settled(scope, plan, _TableFrames(scope, reader))


def _warn_of_parts(scope: ReadScope, partitions: PartitionOptions, keys: Sequence[str]) -> None:
    """Say that rows may move between parts, each of which is a query at a time of its own."""
    by = partitions.splits_beside(keys)
    if by is not None:
        log.warning(
            "%s: parts by %r: each part is read at another time, so a row of which that changes meanwhile, and its "
            "keys do not, is missed, or met twice. Split by a key (%s), or by what changes only together with the keys "
            "of its row.",
            scope.label,
            by,
            ", ".join(keys),
        )


def _bound(scope: ReadScope, wanted: TableReadOptions) -> Bound:
    given = scope.share.bound
    twice = set(given.given()) & set(wanted.options.bound.given())
    if twice:
        raise scope.refused(f"{', '.join(sorted(twice))}: given to .jdbc(...) and to job.batches(...)")
    return replace(wanted.options.bound, **{name: getattr(given, name) for name in given.given()})


def check_table_read(scope: ReadScope, wanted: TableReadOptions) -> None:
    """Make sure that nothing is asked for that a table has not, or that would change which rows are read.

    Raises:
        OptionError: it is.
    """
    for name in wanted.properties:
        if name.lower() in _REFUSED:
            raise scope.refused(f"property {name!r} can't be used under a bookmark; {_REFUSED[name.lower()]}")
    per = wanted.options.per
    scope.check_loop(None if per is None else f"per={per!r}", "a table without per=...")
    if scope.format is not None:
        raise scope.refused(f"format {scope.format!r}: a table has none")
    if scope.schema is not None:
        raise scope.refused("a schema: a table has its own. Set types by the property customSchema, as in Spark")


def _reader(scope: ReadScope, login: DatabaseLogin, recipe: Recipe, wanted: TableReadOptions) -> TableReader:
    properties = reading_properties(login, wanted.properties)
    connect = connecting(scope, login)
    return TableReader(spark_url(login), recipe.dialect, properties, wanted.partitions, connect)


def connecting(scope: ReadScope, login: DatabaseLogin) -> Connect:
    """Return what opens a session of the database: of a client of Python, or of Spark where there is none."""
    why = why_no_client(login.dialect)
    if why is not None:
        log.info("%s: the database is asked by Spark, in sessions of its own: %s", scope.label, why)

    @contextmanager
    def connect() -> Iterator[Queries]:
        if why is not None:
            yield SparkQueries(scope.spark, login)
            return
        with open_database(login) as database:
            yield database

    return connect


class _TableFrames(ContextFrames["TablePlan"]):
    """The frames of a context that reads a table."""

    def __init__(self, scope: ReadScope, reader: TableReader) -> None:
        self._scope, self._reader = scope, reader

    def frame(self, plan: TablePlan, recorded: str | None, schema: StructType | None) -> DataFrame:
        """Return the rows of a window; see `ContextFrames.frame`. An empty one has the columns of the table now."""
        frame = self._reader.frame(self._scope.spark, plan, schema)
        self._scope.inputs.note_columns(self._scope.label, frame.schema)
        return frame
