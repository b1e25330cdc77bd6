"""The conformance suite, on every table there is: SQLite in memory and in a file, moto, DynamoDB Local."""

from __future__ import annotations

from tests.store.conformance import TableConformance


class TestTable(TableConformance):
    """Each test runs once for each backend."""
