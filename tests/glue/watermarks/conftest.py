"""A client of DynamoDB for the tables of watermarks."""

from __future__ import annotations

from typing import Any

import boto3
import pytest


@pytest.fixture
def client(moto_url: str) -> Any:
    session = boto3.Session("test", "test", region_name="eu-west-1")
    return session.client("dynamodb", endpoint_url=moto_url)
