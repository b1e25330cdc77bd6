"""What is read out of Spark's explanation of a query."""

from __future__ import annotations

import pytest

from airflow_bookmarks.spark.query import UNKNOWN, parse

_RELATION = "CollectMetrics one-1, [count(1) AS rows#3L], 0\n      +- Relation [a#1,b#2L] csv"


def explained(optimized: str) -> str:
    return (
        "== Parsed Logical Plan ==\n'Project [*]\n\n== Analyzed Logical Plan ==\na: int\nProject [a#1]\n"
        "+- SubqueryAlias mark_1\n   +- Relation [a#1,b#2L] csv\n\n"
        f"== Optimized Logical Plan ==\n{optimized}\n\n== Physical Plan ==\nCollectLimit 1\n"
    )


@pytest.mark.parametrize(
    ("optimized", "to_the_end", "once"),
    [
        (f"Project [a#1]\n+- {_RELATION}", True, True),
        (f"Filter (a#1 > scalar-subquery#5 [])\n:  +- Aggregate [max(a#9)]\n:     +- {_RELATION}", True, True),
        (f"Sort [a#1 ASC], true\n+- {_RELATION}", True, False),
        (f"Join Inner, (a#1 = a#7)\n:- Range (0, 5)\n+- {_RELATION}", True, True),
        (f"Project [(a#1 = 1)]\n+- Join Inner\n   :- Range (0, 5)\n   +- {_RELATION}", True, False),
        (f"GlobalLimit 3\n+- LocalLimit 3\n   +- {_RELATION}", False, True),
        (f"MapInPandas f(a#1)#7, [a#8], false\n+- {_RELATION}", False, True),
        (
            f"InMemoryRelation [a#1], StorageLevel(disk)\n      +- *(1) ColumnarToRow\n         +- {_RELATION}",
            True,
            False,
        ),
        (f"InMemoryRelation [a#1], StorageLevel(disk)\n      +- CollectLimit 5\n         +- {_RELATION}", False, False),
        (f"Project [it says\nGlobalLimit 3 AS x]\n+- {_RELATION}", False, True),
    ],
)
def test_query_reads_to_the_end_where_nothing_in_it_may_stop_early(
    optimized: str, to_the_end: bool, once: bool
) -> None:
    query = parse(explained(optimized))

    assert (query.reads_to_the_end, query.reads_once) == (to_the_end, once)
    assert query.metrics == {"one-1"}
    assert query.marks == {"mark_1", "#1", "#2"}


def test_explanation_that_was_cut_short_tells_nothing() -> None:
    assert parse(explained(_RELATION).partition("== Physical")[0]) == UNKNOWN
    assert UNKNOWN.is_made_from(frozenset(["x"]))
