"""A script for Glue, with a store of its own, and a database of its own in a Data Catalog."""

from __future__ import annotations

import uuid

import boto3.session
import pytest

from tests.conftest import REGION
from tests.glue.running import Tables


@pytest.fixture
def tables(moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch) -> Tables:
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    client = aws_session.client("glue", region_name=REGION, endpoint_url=moto_url)
    database = f"db_{uuid.uuid4().hex}"
    client.create_database(DatabaseInput={"Name": database})
    return Tables(client, database)
