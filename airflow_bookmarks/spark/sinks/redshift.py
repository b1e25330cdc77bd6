"""Write a DataFrame to the files that a COPY loads into Redshift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from airflow_bookmarks.core.database.copy.columns import CopyColumn
from airflow_bookmarks.core.database.copy.load import options_of, role_of
from airflow_bookmarks.core.database.copy.token import CopyToken
from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.errors import OptionError, PublishError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.sinks.failure import REDSHIFT_SINK
from airflow_bookmarks.sinks.reaching import entered
from airflow_bookmarks.sinks.redshift.client import CopyClient, RedshiftClient
from airflow_bookmarks.sinks.redshift.place import CopyTarget, name_of, rows_folder
from airflow_bookmarks.sinks.redshift.staging import CopyStaging, with_schema
from airflow_bookmarks.sinks.staging import Staged, StagingRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame

    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.databases.login import DatabaseLogin
    from airflow_bookmarks.files.filesystem import FileSystem

_LEFT = "Nothing was committed or published."
_SMALL = ("tinyint", "smallint")


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """What a script asks of an output of Redshift, in its own texts.

    `role` None is the default role of the cluster; `options` are Glue's `extracopyoptions`; `before` and `after` are
    statements that the publish runs in its transaction.
    """

    url: str
    table: str
    role: str | None = None
    options: str | None = None
    before: str | Iterable[str] | None = None
    after: str | Iterable[str] | None = None


@dataclass(frozen=True, slots=True)
class RedshiftTable:
    """A table of Redshift, staged in files below `folder`; `what` names job and output."""

    what: str
    target: CopyTarget
    login: DatabaseLogin
    folder: str
    client: CopyClient

    @classmethod
    def open(
        cls, what: str, databases: DatabaseAccess, request: CopyRequest, frame: DataFrame, folder: str
    ) -> RedshiftTable:
        """Find the login of a database, and look whether the table takes the columns of a frame.

        Raises:
            OptionError: what is asked can't be done, or the table lacks a column.
            PublishError: the database can't be reached.
        """
        client = RedshiftClient()
        address = DatabaseAddress.parse(request.url)
        login = databases.login(address)
        if login.dialect != "redshift":
            raise OptionError(
                f"{what}: {address} is no database of Redshift, but of {login.dialect}. {_LEFT} Write it by "
                ".jdbc(url, table)."
            )
        why_not = client.why_not_from(folder)
        if why_not is not None:
            raise OptionError(f"{what}: {why_not}. {_LEFT} Give a folder of S3 (redshift_tmp_dir, tmp_dir).")
        script = PublishScript.of("redshift", request.before, request.after)
        role, options = role_of(request.role), options_of(request.options)
        columns = _columns_of(what, frame)
        with entered(login, _left(what), PublishError, client.open) as database:
            table = with_schema(database, SinkTable.parse(request.table))
            target = CopyTarget(address, table, columns, role, options, script)
            CopyStaging(what, target).check(database)
        return cls(what, target, login, folder, client)

    def place(self, when_empty: WhenEmpty | None) -> StagingRequest:
        """Return what is stored before the first byte is written."""
        return StagingRequest(REDSHIFT_SINK, str(self.target), self.folder, self.target.stats(), when_empty)

    def write(self, frame: DataFrame, files: FileSystem, place: str, label: str) -> Staged:
        """Write the frame to files below its place, and list those for the COPY.

        Args:
            frame: the rows.
            files: the file system of the place.
            place: where the run has stored that it stages.
            label: what the table of fences tells people.

        Raises:
            OptionError: a COPY can't name the place.
            PublishError: another run has published.
        """
        name = name_of(place)
        if name is None:
            raise PublishError(f"{self.what}: {place!r} is no staging folder. {_LEFT}")
        self.target.load(place, rows=1).copy(str(name))  # what can't be named shows here, and not after the commit
        staging, token = CopyStaging(self.what, self.target), CopyToken(self.target.schema, name)
        with entered(self.login, _left(self.what), PublishError, self.client.open) as database:
            staging.create(database, token, label)
        listed, rows = self._written(frame, files, rows_folder(place))
        with entered(self.login, _left(self.what), PublishError, self.client.open) as database:
            staging.seal(database, files, token, place, listed, rows)
        size = sum(size for _, size in listed)
        return Staged((), rows=rows, schema=frame.schema.json(), figures={"files": len(listed), "bytes": size})

    def _written(self, frame: DataFrame, files: FileSystem, folder: str) -> tuple[list[tuple[str, int]], int]:
        """Write the files; return them with their sizes, and how many rows their footers tell."""
        plain = frame.select(*(_plain(frame, at, each) for at, each in enumerate(self.target.columns)))
        plain.write.parquet(files.uri(folder))
        found = [(each.path, each.size_bytes) for each in files.list(folder).files]
        if not found:
            return [], 0
        reader = frame.sparkSession.read.schema(plain.schema)
        return found, int(reader.parquet(files.pattern(folder)).count())


def _columns_of(what: str, frame: DataFrame) -> tuple[CopyColumn, ...]:
    try:
        columns = tuple(CopyColumn.of(field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    except OptionError as error:
        raise OptionError(f"{what}: {error}") from error
    names = [each.name.lower() for each in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        why = f"Redshift tells no case of names apart, and {', '.join(twice)} comes twice" if twice else "no columns"
        raise OptionError(f"{what}: {why}. {_LEFT} Rename columns of the frame.")
    return columns


def _plain(frame: DataFrame, at: int, column: CopyColumn) -> Column:
    """Return a column as it is written: by its place, since a name may have letters that Parquet does not take."""
    name = column.name.replace("`", "``")
    return _value(frame[f"`{name}`"], column).alias(f"c{at}")


def _value(found: Column, column: CopyColumn) -> Column:
    if column.scale is not None:  # as text a decimal may get an exponent
        return F.translate(F.format_number(found, column.scale), ",", "")
    if column.kind == "timestamp":
        return F.date_format(found, "yyyy-MM-dd HH:mm:ss.SSSSSSxxx")
    if column.is_text:
        return found.cast("string")
    return found.cast("int") if column.kind in _SMALL else found


def _left(what: str) -> str:
    """Say after an error of the database what it was for, what is left, and what to do."""
    return f"That was for {what}. {_LEFT} Mend the cause, such as a right that is missing, and run the job again."
