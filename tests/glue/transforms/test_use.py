"""Promise GLUE-3: what a transform makes of a context counts as made from it, and what is left unused is warned of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from tests.glue.running import Script

pytestmark = pytest.mark.spark

UNUSED = "no output of this run is known to be made from context 'orders'"


def copy(script: Script, made: Callable[[DynamicFrame], Any]) -> None:
    """Make a run that reads orders, and writes what is made of them."""
    script.put("orders/a.json", '{"id": 1, "items": [{"n": 1}, {"n": 2}]}', '{"id": 2, "items": []}')

    def body(context: GlueContext) -> None:
        orders = context.create_dynamic_frame.from_options(
            "s3", {"paths": [script.path("orders")]}, "json", transformation_ctx="orders"
        )
        context.write_dynamic_frame.from_options(
            made(orders), connection_type="s3", connection_options={"path": script.path("out")}, format="json"
        )

    script.run(body)


@pytest.mark.seldom
@pytest.mark.parametrize("name", ["root", "root_items"])
def test_table_of_relationalize_counts_as_made_from_its_context(
    script: Script, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    copy(script, lambda orders: orders.relationalize("root", script.path("tmp")).select(name))
    assert "is known to be made from" not in caplog.text


@pytest.mark.seldom
def test_record_of_map_counts_as_made_from_its_context(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    copy(script, lambda orders: orders.map(lambda record: record))
    assert "is known to be made from" not in caplog.text


def test_context_that_no_output_is_made_from_is_warned_of(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    def of_no_context(orders: DynamicFrame) -> DynamicFrame:
        return DynamicFrame.fromDF(script.spark.range(3), script.context, "numbers")

    copy(script, of_no_context)
    assert UNUSED in caplog.text
