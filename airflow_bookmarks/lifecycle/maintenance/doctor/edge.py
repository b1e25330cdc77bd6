"""Edges: what consumers have consumed, against what the job has published and against their own positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.lifecycle.history.timeline_switch import upstream_of
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.edge import Edge
    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey


def examine_edges(survey: Survey) -> Iterator[Finding]:
    """Find edges that no consumer can have left so."""
    if survey.head is None or not survey.edges:
        return
    consumers = survey.store.heads_or_damage(list(survey.edges))
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
        if edge.contexts and edge.run_number != min(edge.contexts.values()):
            what = (
                f"the edge of consumer {consumer!r} is at run {edge.run_number}, and the lowest of its contexts at "
                f"{min(edge.contexts.values())}"
            )
            yield Finding("edge-differs", survey.job, Severity.WARNING, what, where, _WRITTEN_ANEW)


_WRITTEN_ANEW = (
    "The consumer's next run that reads something new writes it again; until then history is not collected by it."
)


def examine_upstreams(survey: Survey) -> Iterator[Finding]:
    """Find contexts that read a job which does not know it, or knows it elsewhere than they are."""
    for ctx, state in {} if survey.head is None else survey.head.contexts.items():
        if state.kind != "upstream":
            continue
        upstream = upstream_of(state)
        try:
            if survey.store.look(upstream).head is not None:
                yield from _upstream(survey, ctx, state, upstream, survey.store.edge(upstream, survey.job))
        except StateCorruptError:
            continue  # what is damaged there, the examination of that job says


def _upstream(survey: Survey, ctx: str, state: ContextState, upstream: str, edge: Edge | None) -> Iterator[Finding]:
    where, at = f"HEAD, context {ctx!r}", int(state.watermark or 0)
    noted = None if edge is None else edge.contexts.get(ctx)
    if noted == at:
        return
    if noted is None:
        what = (
            f"{ctx!r} has read job {upstream!r} up to run {at}, and that job has no edge of it: a collection there may "
            "take what was not read yet"
        )
        yield Finding("edge-missing", survey.job, Severity.WARNING, what, where, _WRITTEN_ANEW)
        return
    what = f"{ctx!r} has read job {upstream!r} up to run {at}, and its edge there says {noted}"
    severity = Severity.WARNING
    if noted > at:
        what += ": what lies between counts as read there, and a collection may take it"
        severity = Severity.ERROR
    yield Finding("edge-differs", survey.job, severity, what, where, _WRITTEN_ANEW)
