"""Tables of DynamoDB are read whole, with a warning."""

from __future__ import annotations

import uuid
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from tests.conftest import REGION
from tests.glue.running import Script

pytestmark = pytest.mark.spark


@pytest.fixture
def table(moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    client = aws_session.client("dynamodb", region_name=REGION, endpoint_url=moto_url)
    name = f"table_{uuid.uuid4().hex}"
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.put_item(TableName=name, Item={"id": {"N": "1"}, "tags": {"SS": ["a"]}, "of": {"M": {"x": {"BOOL": True}}}})
    client.put_item(TableName=name, Item={"id": {"N": "2"}, "tags": {"SS": ["b"]}, "none": {"NULL": True}})
    return name


def read(table: str, **more: Any) -> dict[str, Any]:
    options = {"dynamodb.input.tableName": table, "dynamodb.throughput.read.percent": "1.0", **more}
    return {"connection_type": "dynamodb", "connection_options": options, "transformation_ctx": "items"}


@pytest.mark.seldom
def test_all_items_are_read_in_each_run(script: Script, table: str, caplog: pytest.LogCaptureFixture) -> None:
    def body(context: Any) -> list[tuple[Any, ...]]:
        frame = context.create_dynamic_frame.from_options(**read(table)).toDF()
        return sorted((row["id"], tuple(row["tags"])) for row in frame.collect())

    for _ in range(2):
        assert script.run(body) == [(1, ("a",)), (2, ("b",))]
    assert "DynamoDB has no bookmark" in caplog.text


def test_table_that_is_not_there_is_an_error(script: Script, table: str) -> None:
    with pytest.raises(SourceError, match="'gone' of DynamoDB can't be read"):
        script.rows(**read("gone"))


def test_exports_are_out_of_reach(script: Script, table: str) -> None:
    with pytest.raises(GlueUnsupportedError, match="export"):
        script.rows(**read(table, **{"dynamodb.export": "ddb"}))
