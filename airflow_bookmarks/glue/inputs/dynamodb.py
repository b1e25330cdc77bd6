"""Read a table of DynamoDB whole: it has no bookmark in Glue, and none here."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.json_records.json_frame import frame_of_json
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.inputs.documents import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.glue.inputs.options import Words
    from airflow_bookmarks.glue.run import GlueRun

_WITHOUT_EFFECT = (
    "dynamodb.throughput.read.percent", "dynamodb.splits", "dynamodb.s3.bucket", "dynamodb.s3.prefix",
    "dynamodb.unnestDDBJson", "dynamodb.s3.bucketOwner",
)  # fmt: skip


def read_dynamodb(run: GlueRun, words: Words, *, ctx: str, glue_ctx: object, name: str | None = None) -> DynamicFrame:
    """Return all items of a table.

    Args:
        run: the current run.
        words: the options of the script.
        ctx: the transformation_ctx, which has no effect.
        glue_ctx: the `GlueContext` of the script.
        name: the table, where the catalog names it.

    Raises:
        OptionError: no table is named. SourceError: it can't be read.
        GlueUnsupportedError: an export, or a role of another account.
    """
    table = words.text("dynamodb.input.tableName") or name or words.text("tableName")
    if table is None:
        raise OptionError(f"{words.call}: no dynamodb.input.tableName. Nothing was read or changed.")
    if (words.text("dynamodb.export") or "").lower() not in ("", "none"):
        raise GlueUnsupportedError(
            words.call, "the export of a table of DynamoDB", "Leave dynamodb.export out: the table is scanned."
        )
    if words.text("dynamodb.sts.roleArn") is not None:
        raise GlueUnsupportedError(
            words.call, "another role for DynamoDB", "Give the driver that role, or a profile that takes it."
        )
    words.leave(*_WITHOUT_EFFECT, "dynamodb.simplifyDDBJson")
    words.tell_left(run, ctx)
    run.check()
    run.note_use()
    run.warn_once(f"{words.call}: DynamoDB has no bookmark, so the table {table!r} is read whole in each run")
    texts = [(json.dumps(item, ensure_ascii=False),) for item in _items(words.call, table)]
    run.count("recordsRead", len(texts), ctx=ctx)
    text = run.spark.createDataFrame(texts, f"{VALUE} string")
    rows = frame_of_json(text, run=run, name=ctx or table)
    return DynamicFrame.of(rows.frame, glue_ctx, ctx or table, errors=rows.errors)


def _items(call: str, table: str) -> Iterator[dict[str, Any]]:
    import boto3.session  # takes half a second
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client = boto3.session.Session().client("dynamodb")
        for page in client.get_paginator("scan").paginate(TableName=table):
            yield from (_plain({"M": item}) for item in page["Items"])
    except (BotoCoreError, ClientError) as error:
        raise SourceError(
            f"{call}: the table {table!r} of DynamoDB can't be read: {redacted(str(error))}. Nothing was read or "
            "changed. Look at its name, the region, and the right dynamodb:Scan of this process."
        ) from error


def _plain(value: Mapping[str, Any]) -> Any:
    """Return a value of DynamoDB as JSON has it; bytes in base64, a set as a list."""
    ((kind, held),) = value.items()
    if kind == "M":
        return {name: _plain(each) for name, each in held.items()}
    if kind == "L":
        return [_plain(each) for each in held]
    if kind in ("NS", "SS", "BS"):
        return [_plain({kind[0]: each}) for each in held]
    if kind == "NULL":
        return None
    if kind == "N":
        return _number(held)
    return base64.b64encode(held).decode() if kind == "B" else held


def _number(text: str) -> int | float:
    number = Decimal(text)
    return (
        int(number)
        if number == number.to_integral_value() and "." not in text and "E" not in text.upper()
        else float(number)
    )
