"""Which statements a job has its session run to look at tables: they are counted, as each takes a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.lake import Lake


def statements_of(lake: Lake, monkeypatch: pytest.MonkeyPatch, play: Callable[[], Any]) -> list[str]:
    """Return what a job asks its session about tables by SQL, cut to the words before the name of one."""
    said: list[str] = []
    real = type(lake.spark).sql

    def sql(session: SparkSession, query: str, *args: Any, **kwargs: Any) -> DataFrame:
        if query.startswith(("DESCRIBE", "SHOW")):
            said.append(query.partition("`")[0].rpartition(" ")[0])
        return real(session, query, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(type(lake.spark), "sql", sql)
        play()
    return said
