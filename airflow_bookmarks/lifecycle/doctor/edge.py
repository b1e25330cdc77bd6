"""Edges: what consumers have consumed, against what the job has published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.lifecycle.doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.lifecycle.doctor.survey import Survey


def examine_edges(survey: Survey) -> Iterator[Finding]:
    """Find edges that no consumer can have left so."""
    if survey.head is None or not survey.edges:
        return
    consumers = survey.store.heads(list(survey.edges))
    for consumer, edge in survey.edges.items():
        where = f"DOWN#{consumer}"
        reached = max([edge.run_number, *edge.contexts.values()])
        if reached > survey.head.published:
            what = (
                f"consumer {consumer!r} has consumed up to run {reached}, and only {survey.head.published} is "
                "published: it would take later runs for read"
            )
            mend = f"Rewind {consumer!r} to a run that had consumed no more than {survey.head.published}."
            yield Finding("edge-ahead", survey.job, Severity.ERROR, what, where, mend)
        if edge.epoch > survey.head.epoch or edge.changes > survey.head.changes:
            what = (
                f"consumer {consumer!r} has seen epoch {edge.epoch} and change count {edge.changes}, and the job is at "
                f"{survey.head.epoch} and {survey.head.changes}: it would miss the next reset, rewind or replay"
            )
            mend = f"Rewind {consumer!r}, or restore the table from a backup."
            yield Finding("edge-ahead", survey.job, Severity.ERROR, what, where, mend)
        if consumer not in consumers:
            what = f"consumer {consumer!r} has an edge and no bookmark; what it has not read is kept for it forever"
            mend = f"Restore {consumer!r} from a backup, or delete it, which removes its edges."
            yield Finding("edge-without-consumer", survey.job, Severity.WARNING, what, where, mend)
