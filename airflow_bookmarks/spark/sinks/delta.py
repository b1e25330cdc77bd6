"""Write a DataFrame to a Delta table in one commit of the table, under the token of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import FencedError, OptionError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.files.opener import canonical_folder, open_filesystem
from airflow_bookmarks.sinks.delta.log_tail import LogTail
from airflow_bookmarks.sinks.delta.tables import search
from airflow_bookmarks.sinks.delta.target import DeltaOutput
from airflow_bookmarks.sinks.delta.token import DeltaToken
from airflow_bookmarks.sinks.failure import DELTA_SINK
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.sinks.delta_session import (
    RETENTION,
    SessionTables,
    append,
    conf_of,
    few_state_partitions,
    is_taken,
    options_of,
    sql_of,
    uri_of,
)
from airflow_bookmarks.spark.tables.merge import (
    check_can_merge,
    check_columns,
    check_key_types,
    check_keys,
    kept,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.database.upsert import Upsert
    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.sinks.delta.tables import TableCommit
    from airflow_bookmarks.sinks.delta.target import DeltaTarget
    from airflow_bookmarks.spark.tables.described import DescribedTable

_LEFT = "Nothing was written or committed."
_OF_SINK = ("txnappid", "txnversion", "usermetadata")
_REPLACE_WHERE, _OVERWRITE_SCHEMA, _MERGE_SCHEMA = "replacewhere", "overwriteschema", "mergeschema"
_AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
_PLAIN_NAME = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """A Delta table that an output goes to.

    `what` names job and output; `partition_by` and `options` are those of the user; `detail` is what the table says.
    """

    what: str
    tables: SessionTables
    target: DeltaTarget
    detail: DescribedTable
    mode: Mode
    partition_by: tuple[str, ...]
    options: Mapping[str, str]
    upsert: Upsert | None = None

    @classmethod
    def open(
        cls,
        what: str,
        frame: DataFrame,
        target: DeltaTarget,
        *,
        mode: Mode,
        partition_by: tuple[str, ...],
        options: Mapping[str, str],
        upsert: Upsert | None = None,
    ) -> DeltaTable:
        """Find the table, and make it, empty, where it is not there: by the columns of the frame.

        Raises:
            OptionError: it is no Delta table, or one that can't hold what a bookmark promises; an option can't be used.
        """
        _check_options(what, mode, options)
        if upsert is not None:
            _check_upsert(what, mode, options)
            check_can_merge(what, frame.sparkSession, frame.columns, upsert)
        target = _canonical(what, target)
        tables = SessionTables(frame.sparkSession)
        detail = _asked(what, tables, target)
        if detail is None:
            _make(frame, target, partition_by, options)
            detail = _asked(what, tables, target)
        if detail is None:
            raise OptionError(f"{what}: the Delta table {target.name} was made, and is not there. {_LEFT}")
        if not target.is_path and _PLAIN_NAME.fullmatch(detail.name):
            target = replace(target, name=detail.name)  # the present schema may be another one when a run is settled
        if mode is Mode.OVERWRITE_PARTITIONS and not detail.partitions:
            mode = Mode.OVERWRITE
        table = cls(what, tables, target, detail, mode, partition_by, options, upsert)
        table._check()
        if upsert is not None:
            check_key_types(what, sql_of(target), frame, upsert)
        return table

    @property
    def location(self) -> str:
        """The folder of the table."""
        return self.target.name if self.target.is_path else canonical_folder(self.detail.location)

    @property
    def is_overwrite(self) -> bool:
        """Whether rows that are there go."""
        return self.mode is not Mode.APPEND

    def _check(self) -> None:
        if self.detail.provider != "delta":
            raise OptionError(
                f"{self.what}: the table {self.target.name} is of format {self.detail.provider}, and not Delta. "
                f"{_LEFT} Write its files by .save(path), or to a Delta table."
            )
        if RETENTION in self.detail.properties:
            raise OptionError(
                f"{self.what}: the Delta table {self.target.name} has {RETENTION} = "
                f"{self.detail.properties[RETENTION]}, so it forgets which runs have written to it, and a driver that "
                f"seemed dead could write its rows a second time. {_LEFT} Take the property away: ALTER TABLE "
                f"{self._sql_name()} UNSET TBLPROPERTIES ('{RETENTION}')."
            )
        is_made_anew = _flag(self.options, _OVERWRITE_SCHEMA) and self.target.is_path
        if self.partition_by and self.partition_by != self.detail.partitions and not is_made_anew:
            raise OptionError(
                f"{self.what}: partitionBy{self.partition_by!r}, and the Delta table {self.target.name} is partitioned "
                f"by {self.detail.partitions!r}. {_LEFT} Leave partitionBy out, or make the table anew."
            )

    def _sql_name(self) -> str:
        return f"delta.`{uri_of(self.target)}`" if self.target.is_path else self.target.name

    def version(self) -> int:
        """Return the newest version of the table."""
        newest = LogTail(self.location).newest()
        return self.tables.commits(self.target, 1)[0].version if newest is None else newest

    def check_columns(self, frame: DataFrame) -> None:
        """Make sure that the table takes the columns of a frame, or is told to.

        Raises:
            OptionError: it does not.
        """
        evolves = _flag(self.options, _MERGE_SCHEMA) or _flag(self.options, _OVERWRITE_SCHEMA)
        if not evolves and str(frame.sparkSession.conf.get(_AUTO_MERGE, "false")).lower() != "true":
            check_columns(self.what, sql_of(self.target), frame, [name for name, _ in self.detail.columns])

    def request(self, before: int, when_empty: WhenEmpty | None) -> StagingRequest:
        """Return what is stored before the rows land; `before` is the newest version of the table then."""
        output = DeltaOutput(
            self.mode,
            before,
            self.detail.partitions,
            () if self.upsert is None else self.upsert.keys,
            replaces_part=_option(self.options, _REPLACE_WHERE) is not None,
            folder=None if self.target.is_path else self.location,
        )
        return StagingRequest(DELTA_SINK, self.target.name, None, output.stats(self.target), when_empty)

    def prepared(self, frame: DataFrame, *, is_observed: bool) -> DataFrame:
        """Return the rows as they are written: those of an upsert are evaluated, and their keys checked.

        `is_observed` is whether the job waits to be told what was read of its contexts.

        Raises:
            OptionError: it is not certain what becomes of a key.
        """
        if self.upsert is None:
            return frame
        rows = kept(frame, is_observed=is_observed)
        check_keys(self.what, rows, self.upsert)
        return rows

    def write(self, frame: DataFrame, place: str, before: int) -> Staged:
        """Write the frame under the token that `place` names, and find the commit that has it, after version `before`.

        Raises:
            FencedError: Delta has skipped the write, because the token was burned: another run has the job.
        """
        token = DeltaToken.parse(place)
        if token is None:
            raise OptionError(f"{self.what}: {place!r} is no token of a Delta table. {_LEFT}")
        try:
            with few_state_partitions(frame.sparkSession, LogTail(self.location).files(before)):
                if self.upsert is None:
                    self._write(frame, {**self.options, **options_of(token)})
                else:
                    merge(frame, sql_of(self.target), conf_of(token), self.upsert)
        except SPARK_ERRORS as error:
            if not is_taken(error):
                raise
            raise self._fenced(token) from error
        commit = self._find(token, before)
        if commit is None and self.upsert is not None:
            # MERGE commits nothing where it changes nothing. If the token is free still, it was that.
            self.tables.burn(self.target, token)
            commit = self._find(token, before)
        if commit is None:
            raise self._fenced(token)
        figures = commit.figures()
        return Staged((), rows=figures["rows"], schema=frame.schema.json(), figures=figures)

    def _find(self, token: DeltaToken, before: int) -> TableCommit | None:
        found = LogTail(self.location).commit(str(token), before)
        return search(self.tables, self.target, {str(token)}, before).commit if found is None else found

    def _fenced(self, token: DeltaToken) -> FencedError:
        """Return the error of a write that Delta has skipped, or let fail, since a higher number was there."""
        return FencedError(
            f"{self.what}: the Delta table {self.target.name} took no row of this run: its application "
            f"{token.application!r} has number {token.number} or a higher one already. So another run has taken the "
            f"job over; or a state table that was lost had the same namespace, job and output. {_LEFT} In the first "
            "case leave it to that run; in the second give the output another name."
        )

    def _write(self, frame: DataFrame, options: Mapping[str, str]) -> None:
        if self.mode is Mode.APPEND:
            append(frame, self.target, options)
            return
        options = {**options, **self._partition_mode()}
        if self.target.is_path:
            writer = frame.write.format("delta").mode("overwrite").options(**options)
            (writer.partitionBy(*self.partition_by) if self.partition_by else writer).save(uri_of(self.target))
            return
        # Not saveAsTable: with "overwrite" it replaces the table, and loses its partitioning.
        named = frame.writeTo(self.target.name)
        for key, value in options.items():
            named = named.option(key, value)
        if self.mode is Mode.OVERWRITE_PARTITIONS:
            named.overwritePartitions()
        else:
            named.overwrite(F.lit(True))

    def _partition_mode(self) -> dict[str, str]:
        """Return the option that says what an overwrite replaces: without it Delta follows the conf of the session.

        That holds for `overwrite(True)` of a table by its name as well. With `replaceWhere` Delta takes no such option.
        """
        if _option(self.options, _REPLACE_WHERE) is not None:
            return {}
        return {"partitionOverwriteMode": "dynamic" if self.mode is Mode.OVERWRITE_PARTITIONS else "static"}


def _asked(what: str, tables: SessionTables, target: DeltaTarget) -> DescribedTable | None:
    try:
        return tables.detail(target)
    except OptionError as error:
        raise OptionError(f"{what}: {str(error).rstrip('.')}. {_LEFT}") from error


def _canonical(what: str, target: DeltaTarget) -> DeltaTarget:
    if not target.is_path:
        if not target.name.strip():
            raise OptionError(f"{what}: the name of a Delta table is empty. {_LEFT} Give a name or a path.")
        return target
    return replace(target, name=open_filesystem(target.name).canonical(target.name))


def _make(frame: DataFrame, target: DeltaTarget, partition_by: tuple[str, ...], options: Mapping[str, str]) -> None:
    """Make an empty table: an append to none would make it within the commit that has to be found again."""
    properties = {key: value for key, value in options.items() if key.lower().startswith("delta.")}
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    writer = empty.write.format("delta").mode("ignore").options(**properties)
    writer = writer.partitionBy(*partition_by) if partition_by else writer
    if target.is_path:
        writer.save(uri_of(target))
    else:
        writer.saveAsTable(target.name)


def _check_options(what: str, mode: Mode, options: Mapping[str, str]) -> None:
    for name in options:
        if name.lower() in _OF_SINK:
            raise OptionError(
                f"{what}: the option {name!r} can't be used with a managed Delta table. {_LEFT} The job sets it: by "
                "txnAppId and txnVersion a run lands once, and by userMetadata it is found in the history of the table."
            )
    only_overwrites = [name for name in (_REPLACE_WHERE, _OVERWRITE_SCHEMA) if _option(options, name) is not None]
    if mode is Mode.APPEND and only_overwrites:
        raise OptionError(
            f"{what}: {_named(options, only_overwrites[0])!r} has no effect in mode 'append'. {_LEFT} Use mode "
            "'overwrite', or leave it out."
        )
    if mode is Mode.OVERWRITE_PARTITIONS and only_overwrites:
        raise OptionError(
            f"{what}: {_named(options, only_overwrites[0])!r} and partitionOverwriteMode='dynamic' say two things. "
            f"{_LEFT} Use one of them."
        )


def _check_upsert(what: str, mode: Mode, options: Mapping[str, str]) -> None:
    if mode is not Mode.APPEND:
        raise OptionError(
            f"{what}: upsert(...) keeps rows, and mode 'overwrite' deletes them. {_LEFT} Use one of them."
        )
    unused = [name for name in options if not name.lower().startswith("delta.")]
    if unused:
        raise OptionError(
            f"{what}: the option {unused[0]!r} has no effect on an upsert, which is a MERGE. {_LEFT} Leave it out; "
            "add columns to the table with ALTER TABLE."
        )


def _option(options: Mapping[str, str], name: str) -> str | None:
    return next((value for key, value in options.items() if key.lower() == name), None)


def _named(options: Mapping[str, str], name: str) -> str:
    return next(key for key in options if key.lower() == name)


def _flag(options: Mapping[str, str], name: str) -> bool:
    value: Any = _option(options, name)
    return value is not None and str(value).lower() == "true"
