"""Tables in which scripts keep watermarks."""

from __future__ import annotations

from typing import Any


def make_table(client: Any, name: str) -> None:
    """Make a table of watermarks."""
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "jobName", "KeyType": "HASH"}, {"AttributeName": "runId", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("jobName", "runId")],
        BillingMode="PAY_PER_REQUEST",
    )
