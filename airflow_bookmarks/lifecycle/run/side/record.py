"""The side record that a paused or disabled run leaves, display-only: no run reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.lifecycle.inspect.runs import KIND
from airflow_bookmarks.sources.contract import stats_of
from airflow_bookmarks.store.codec.item import payload_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.option import Choice
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import Payload
    from airflow_bookmarks.lifecycle.run.use.inputs import RunInputs
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class SideRecord:
    """The record of one run; it is stored before the first change where the run replaces what others have published."""

    def __init__(self, store: BookmarkStore, job: str, identity: RunIdentity, choice: Choice) -> None:
        self._store, self._job, self._identity, self._choice = store, job, identity, choice
        self._id: str | None = None

    def note_replaced(self, replaced: Mapping[str, Payload]) -> None:
        """Store what is about to be replaced, before the first of it is deleted; without an attempt, do nothing."""
        if replaced:
            record: dict[str, Any] = {
                "option": self._choice.option.value,
                "run_id": self._identity.run_id,
                "attempt": 0,
            }
            record |= {"contexts": {}, "outputs": {}}
            self._id = self._store.put_side(self._job, record, replaced=replaced)

    def leave(
        self,
        contexts: Mapping[str, Any],
        outputs: Mapping[str, Any],
        inputs: RunInputs,
        replaced: Mapping[str, Payload],
    ) -> None:
        """Store the facts of the run, and the plan of each context with its kind, once it has published."""
        record: dict[str, Any] = {
            "option": self._choice.option.value,
            "run_id": self._identity.run_id,
            "attempt": self._identity.attempt,
            "from": self._choice.from_run,
            "to": self._choice.to_run,
            # Not in an attribute of its own: which attributes a driver may write, the policies of deployments list.
            "contexts": {ctx: {**figures, KIND: inputs[ctx].source.kind} for ctx, figures in contexts.items()},
            "outputs": outputs,
        }
        manifests = {ctx: plan.encode() for ctx, plan in inputs.plans.items()}
        for ctx, payload in self._store.payloads(manifests).items():
            record[f"plan:{ctx}"] = payload_value(payload)
        self._store.put_side(self._job, record, ulid=self._id, replaced=replaced)


def context_figures(inputs: RunInputs, plans: Mapping[str, Plan]) -> dict[str, dict[str, Any]]:
    """Return what a person wants to know of each context that a run has read."""
    contexts = {ctx: {**stats_of(plan), "rows": inputs[ctx].rows} for ctx, plan in plans.items()}
    for ctx, context in inputs.items():
        if context.greatest is not None:
            contexts[ctx] |= {"watermark_column": context.greatest.column, "greatest": context.greatest.value}
    return contexts
