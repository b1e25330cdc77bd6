"""Tables of the AWS Glue Data Catalog; source: the Glue API: `GetTable`, `BatchCreatePartition`, `BatchGetPartition`.

Region, credentials and endpoint are those of boto3: AWS_REGION, the role of the driver, AWS_ENDPOINT_URL_GLUE.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.files.opener import canonical_folder
from airflow_bookmarks.sinks.files.catalog import elsewhere, is_outside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.sinks.files.catalog import CatalogPartition, TableDefinition

_AT_ONCE = 100  # partitions that one request may create, and fewer than one may ask for
_NAME = re.compile(r"([^.]+)\.([^.]+)")
_CONFIG = Config(retries={"mode": "adaptive", "max_attempts": 10}, connect_timeout=10, read_timeout=60)


_HIVE = "org.apache.hadoop.hive.ql.io"
_TEXT_FILES = ("org.apache.hadoop.mapred.TextInputFormat", f"{_HIVE}.HiveIgnoreKeyTextOutputFormat")
# Of each format the classes by which Hive, and so Athena, reads and writes files, and the one that reads rows.
_HIVE_CLASSES = {
    "parquet": (
        f"{_HIVE}.parquet.MapredParquetInputFormat",
        f"{_HIVE}.parquet.MapredParquetOutputFormat",
        f"{_HIVE}.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": (f"{_HIVE}.orc.OrcInputFormat", f"{_HIVE}.orc.OrcOutputFormat", f"{_HIVE}.orc.OrcSerde"),
    "avro": (
        f"{_HIVE}.avro.AvroContainerInputFormat",
        f"{_HIVE}.avro.AvroContainerOutputFormat",
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    ),
    "json": (*_TEXT_FILES, "org.openx.data.jsonserde.JsonSerDe"),
    "csv": (*_TEXT_FILES, "org.apache.hadoop.hive.serde2.OpenCSVSerde"),
}
# What of a table may be given back to change it.
_OF_INPUT = (
    "Name",
    "Description",
    "Owner",
    "Retention",
    "PartitionKeys",
    "TableType",
    "Parameters",
    "ViewOriginalText",
)


class GlueCatalog:
    """The Data Catalog of this account and region."""

    def check(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """See `PartitionCatalog.check`."""
        found = self._table(table, folder)
        has = [key["Name"].lower() for key in found.get("PartitionKeys", ())]
        if has != [column.lower() for column in columns]:
            raise OptionError(
                f"the Glue table {table} is partitioned by {has or 'nothing'}, and the output by "
                f"{list(columns) or 'nothing'}"
            )
        return table

    def fits(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """See `PartitionCatalog.fits`."""
        return table if self._found(table) is None else self.check(table, folder, columns)

    def outside(self, table: str, folder: str) -> tuple[str, str] | None:
        """See `PartitionCatalog.outside`."""
        if self._found(table) is None:
            return None
        database, name = _names(table)
        page: dict[str, Any] = {"DatabaseName": database, "TableName": name, "ExcludeColumnSchema": True}
        while True:
            said = self._asked("get_partitions", table, **page)
            for each in said.get("Partitions", ()):
                location = each.get("StorageDescriptor", {}).get("Location", "")
                if location and is_outside(location, folder):
                    return "/".join(each["Values"]), location
            if not said.get("NextToken"):
                return None
            page["NextToken"] = said["NextToken"]

    def define(self, table: str, folder: str, definition: TableDefinition) -> None:
        """See `PartitionCatalog.define`."""
        database, name = _names(table)
        found = self._found(table)
        if found is None:
            made = _table_input(name, folder, definition)
            try:
                self._asked("create_table", table, DatabaseName=database, TableInput=made)
            except SourceError:
                if self._found(table) is None:  # else another publisher has made it at the same time
                    raise
            return
        self._table(table, folder)
        has = {each["Name"].lower() for key in ("Columns",) for each in found["StorageDescriptor"].get(key, ())}
        has |= {each["Name"].lower() for each in found.get("PartitionKeys", ())}
        more = [each for each in _columns(definition.columns) if each["Name"] not in has]
        if more and definition.adds_columns:
            kept = {key: value for key, value in found.items() if key in _OF_INPUT}
            storage = found["StorageDescriptor"]
            kept["StorageDescriptor"] = {**storage, "Columns": [*storage.get("Columns", ()), *more]}
            self._asked("update_table", table, DatabaseName=database, TableInput=kept)

    def add(self, table: str, folder: str, partitions: Sequence[CatalogPartition]) -> None:
        """See `PartitionCatalog.add`."""
        if not partitions:
            return
        found = self._table(table, folder)
        storage = found["StorageDescriptor"]
        wanted = [
            {
                "Values": [value for _, value in each.values],
                "StorageDescriptor": {**storage, "Location": f"{storage['Location'].rstrip('/')}/{each.folder}"},
            }
            for each in partitions
        ]
        database, name = _names(table)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            said = self._asked(
                "batch_create_partition", table, DatabaseName=database, TableName=name, PartitionInputList=some
            )
            there = _already_there(table, said.get("Errors", ()))
            self._check_folders(table, [each for each in some if tuple(each["Values"]) in there])

    def _check_folders(self, table: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        """Make sure that partitions that the catalog had already lie where an output has its files."""
        database, name = _names(table)
        ask: Sequence[Mapping[str, Any]] = [{"Values": each["Values"]} for each in partitions]
        found: dict[tuple[str, ...], str] = {}
        while ask:
            said = self._asked("batch_get_partition", table, DatabaseName=database, TableName=name, PartitionsToGet=ask)
            got = said.get("Partitions", ())
            found |= {tuple(each["Values"]): each.get("StorageDescriptor", {}).get("Location", "") for each in got}
            ask = said.get("UnprocessedKeys", ()) if got else ()  # the answer has a largest size
        untold = [each["Values"] for each in partitions if tuple(each["Values"]) not in found]
        if untold:
            raise SourceError(
                f"the Glue table {table} does not tell where {len(untold)} partition(s) lie that it has, the first "
                f"{untold[0]}"
            )
        for each in partitions:
            wanted, location = each["StorageDescriptor"]["Location"], found[tuple(each["Values"])]
            if not location or canonical_folder(location) != canonical_folder(wanted):
                raise elsewhere(f"the Glue table {table}", "/".join(each["Values"]), location, wanted)

    def _found(self, table: str) -> Mapping[str, Any] | None:
        """Return a table wherever it lies; None if there is none."""
        database, name = _names(table)
        try:
            found: Mapping[str, Any] = self._asked("get_table", table, DatabaseName=database, Name=name)["Table"]
        except OptionError:
            return None
        return found

    def _table(self, table: str, folder: str) -> Mapping[str, Any]:
        database, name = _names(table)
        found: Mapping[str, Any] = self._asked("get_table", table, DatabaseName=database, Name=name)["Table"]
        location = found.get("StorageDescriptor", {}).get("Location", "")
        if not location or canonical_folder(location) != folder:
            raise OptionError(
                f"the Glue table {table} lies in {location or 'no folder'!r}, and the output in {folder!r}: write to "
                "the folder of the table, or name a table that lies where the output does, or that is yet to be made"
            )
        return found

    def _asked(self, operation: str, table: str, **given: Any) -> Mapping[str, Any]:
        try:
            client = boto3.session.Session().client("glue", config=_CONFIG)
            said: Mapping[str, Any] = getattr(client, operation)(**given)
        except ClientError as error:
            if error.response["Error"]["Code"] == "EntityNotFoundException":
                raise OptionError(f"there is no Glue table {table}: {error.response['Error']['Message']}") from error
            raise SourceError(f"the Glue table {table} is out of reach: {error}") from error
        except BotoCoreError as error:
            raise SourceError(f"the Glue table {table} is out of reach: {error}") from error
        return said


def _table_input(name: str, folder: str, definition: TableDefinition) -> dict[str, Any]:
    reads, writes, serde = _HIVE_CLASSES[definition.format]
    parameters = {"classification": definition.format, "EXTERNAL": "TRUE"}
    of_serde = {"serialization.format": "1"}
    if definition.format == "csv":
        of_serde = {"separatorChar": definition.options.get("sep", ","), "quoteChar": '"'}
        if definition.options.get("header") == "true":
            parameters["skip.header.line.count"] = "1"
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "PartitionKeys": _columns(definition.partitions),
        "StorageDescriptor": {
            "Columns": _columns(definition.columns),
            "Location": f"{folder.replace('s3a://', 's3://', 1)}/",
            "InputFormat": reads,
            "OutputFormat": writes,
            "SerdeInfo": {"SerializationLibrary": serde, "Parameters": of_serde},
        },
    }


def _columns(columns: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Return columns as the catalog has them: in lower case, as its readers ask for them."""
    return [{"Name": name.lower(), "Type": kind} for name, kind in columns]


def _names(table: str) -> tuple[str, str]:
    found = _NAME.fullmatch(table)
    if found is None:
        raise OptionError(f"{table!r} is no Glue table: give database and table, as in glue:sales.orders")
    return found[1], found[2]


def _already_there(table: str, errors: Sequence[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    """Return the values of the partitions that were not created since the table has them.

    Raises:
        SourceError: others were not created.
    """
    left = [each for each in errors if each["ErrorDetail"]["ErrorCode"] != "AlreadyExistsException"]
    if left:
        detail = left[0]["ErrorDetail"]
        raise SourceError(
            f"the Glue table {table} did not take {len(left)} partition(s), the first {left[0]['PartitionValues']}: "
            f"{detail['ErrorCode']}: {detail.get('ErrorMessage', '')}"
        )
    return {tuple(each["PartitionValues"]) for each in errors}
