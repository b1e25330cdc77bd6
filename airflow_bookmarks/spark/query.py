"""Analyse a query before Spark runs it: which frames it reads, and whether it reads them to their end."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.spark.features import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANALYZED = "== Analyzed Logical Plan =="
_OPTIMIZED = "== Optimized Logical Plan =="
_PHYSICAL = "== Physical Plan =="
_NODE = re.compile(r"[ :|+\-]*(?:\*\(\d+\) )?([A-Za-z]\w*)")
_METRICS = re.compile(r"CollectMetrics ([\w-]+), ")
_RELATION = re.compile(r"Relation \[([^\]]*)\]")
_CROSS = re.compile(r"^[ :|+\-]*Join (?!.* = )", re.MULTILINE)  # each row of one side, with all of the other
_ALIAS = re.compile(r"SubqueryAlias (\w+)")
_COLUMN = re.compile(r"#\d+")

# Whatever is not named here may stop before its input ends: a limit, a function of the user's that gets an iterator.
_TO_THE_END = frozenset((
    "Project", "Filter", "Relation", "CollectMetrics", "Join", "Union", "Aggregate", "Window", "Expand", "Generate",
    "LocalRelation", "Range", "LogicalRDD", "InMemoryRelation", "BatchEvalPython", "ArrowEvalPython", "Sort",
    "Repartition", "RepartitionByExpression", "RebalancePartitions",
    # What a cache holds is counted as Spark runs it.
    "FileScan", "Scan", "ColumnarToRow", "LocalTableScan", "AdaptiveSparkPlan", "Exchange", "BroadcastExchange",
    "ReusedExchange", "AQEShuffleRead", "HashAggregate", "ObjectHashAggregate", "SortAggregate", "BroadcastHashJoin",
    "SortMergeJoin", "ShuffledHashJoin", "BroadcastNestedLoopJoin",
))  # fmt: skip
_ROWS = "LogicalRDD"
# They read their input once to split it, and then again; a cache may lose a part of it, and compute it again.
_MORE_THAN_ONCE = frozenset(("Sort", "RepartitionByExpression", "RebalancePartitions", "InMemoryRelation"))


@dataclass(frozen=True, slots=True)
class Query:
    """A query as Spark has planned it.

    Attributes:
        metrics: the names of the observations that an action on it makes.
        marks: what tells the frames that it was made from, cached or not: aliases, and columns of relations of files,
            which have one name through all queries of a classic session.
        reads_to_the_end: each of its inputs is read to its end.
        reads_once: no row of its inputs is read twice.
        has_rows: it reads rows that a program has handed to Spark, of which Spark does not say where they come from.
    """

    metrics: frozenset[str]
    marks: frozenset[str]
    reads_to_the_end: bool
    reads_once: bool
    is_known: bool = True
    has_rows: bool = False

    def is_made_from(self, marks: frozenset[str]) -> bool:
        """Whether it may have been made from the frame that has some of these marks."""
        return not self.is_known or not marks or not marks.isdisjoint(self.marks)


UNKNOWN = Query(frozenset(), frozenset(), reads_to_the_end=False, reads_once=False, is_known=False)


def query_of(frame: DataFrame) -> Query:
    """Return what Spark would do for an action on a frame; no job runs. `UNKNOWN` where Spark does not say it."""
    name = f"bookmark_{uuid.uuid4().hex}"
    try:
        frame.createTempView(name)
        try:
            # The name is our own.
            rows = frame.sparkSession.sql(f"EXPLAIN EXTENDED SELECT * FROM {name}").collect()  # noqa: S608 (own name)
        finally:
            frame.sparkSession.catalog.dropTempView(name)
    except SPARK_ERRORS:
        return UNKNOWN  # what is wrong with the frame, the action on it tells
    return parse(rows[0][0])


def parse(explained: str) -> Query:
    """Return the query that an answer to EXPLAIN EXTENDED tells."""
    head, has_optimized, rest = explained.partition(_OPTIMIZED)
    optimized, has_physical, _ = rest.partition(_PHYSICAL)
    if not has_optimized or not has_physical:
        return UNKNOWN  # cut short
    analyzed = head.partition(_ANALYZED)[2]
    nodes = [_NODE.match(line) for line in optimized.splitlines() if line.strip()]
    names = {node.group(1) if node else "" for node in nodes}
    return Query(
        frozenset(_METRICS.findall(optimized)),
        frozenset(_ALIAS.findall(analyzed))
        | {column for columns in _RELATION.findall(analyzed) for column in _COLUMN.findall(columns)},
        reads_to_the_end=names <= _TO_THE_END,
        reads_once=names.isdisjoint(_MORE_THAN_ONCE) and not _CROSS.search(optimized),
        has_rows=_ROWS in names,
    )
