"""The items of the table: their keys, and how core's objects are written as attributes.

A person can read them in the DynamoDB console: names in full, times as ISO 8601 UTC, run keys as `number.fence`,
fractions as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.edge import Edge
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.head import Head, Lease
from airflow_bookmarks.core.instant import from_text, to_text
from airflow_bookmarks.core.line import Line, Turning
from airflow_bookmarks.core.run import ContextState, Execution, OutputEntry, Payload, PlanEntry, Run, RunKey, RunState
from airflow_bookmarks.store.table import Attributes, Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RUN_PREFIX, EXECUTION_PREFIX, LINE_PREFIX = "RUN#", "EXEC#", "LINE#"
SIDE_PREFIX, EVENT_PREFIX, EDGE_PREFIX = "SIDE#", "EVENT#", "DOWN#"
SCHEMA = Key("SCHEMA", "SCHEMA")

LEASE_ATTRIBUTES = ("lease_run_id", "lease_attempt", "lease_since", "lease_until", "lease_nonce")
_PLAN, _OUTPUT, _POSITION, _SCHEMA = "plan:", "output:", "position:", "schema:"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one job in one namespace."""

    namespace: str
    job: str

    @property
    def partition(self) -> str:
        return f"{self.namespace}#JOB#{self.job}"

    @property
    def head(self) -> Key:
        return Key(self.partition, "HEAD")

    @property
    def index(self) -> Key:
        return Key(f"{self.namespace}#JOBS", self.job)

    def run(self, key: RunKey) -> Key:
        return Key(self.partition, f"{RUN_PREFIX}{key.number:010d}#{key.fence:010d}")

    def execution(self, run_id: str) -> Key:
        return Key(self.partition, EXECUTION_PREFIX + run_id)

    def line(self, epoch: int) -> Key:
        return Key(self.partition, f"{LINE_PREFIX}{epoch:010d}")

    def side(self, ulid: str) -> Key:
        return Key(self.partition, SIDE_PREFIX + ulid)

    def event(self, ulid: str) -> Key:
        return Key(self.partition, EVENT_PREFIX + ulid)

    def edge(self, consumer: str) -> Key:
        return Key(self.partition, EDGE_PREFIX + consumer)


def run_key(sort_key: str) -> RunKey:
    """Return the run key that a sort key `RUN#<number>#<fence>` names."""
    _, number, fence = sort_key.split("#")
    return RunKey(int(number), int(fence))


# ---- head


def lease_attributes(lease: Lease) -> Attributes:
    """Return a lease as attributes of the head."""
    values = (lease.run_id, lease.attempt, to_text(lease.since), to_text(lease.expires_at), lease.nonce)
    return dict(zip(LEASE_ATTRIBUTES, values, strict=True))


def head_attributes(head: Head) -> Attributes:
    """Return a whole head as attributes: for the first write only; later writes name what they change."""
    attributes: Attributes = {
        "version": head.version,
        "epoch": head.epoch,
        "fence": head.fence,
        "changes": head.changes,
        "run_number": head.run_number,
        "published": head.published,
        "data_run_number": head.data_run_number,
        "contexts": contexts_value(head.contexts),
        "staging": list(head.staging),
    }
    if head.publishing is not None:
        attributes["publishing"] = str(head.publishing)
    if head.cleaning is not None:
        attributes["cleaning"] = payload_value(head.cleaning)
    if head.protected:
        attributes["protected"] = True
    if head.lease is not None:
        attributes |= lease_attributes(head.lease)
    return attributes


def head_of(attributes: Mapping[str, Any]) -> Head:
    """Return the head that the attributes hold."""
    with _Reading("HEAD"):
        lease = None
        if "lease_nonce" in attributes:
            lease = Lease(
                attributes["lease_run_id"],
                attributes["lease_attempt"],
                from_text(attributes["lease_since"]),
                from_text(attributes["lease_until"]),
                attributes["lease_nonce"],
            )
        publishing, cleaning = attributes.get("publishing"), attributes.get("cleaning")
        return Head(
            version=attributes["version"],
            epoch=attributes["epoch"],
            fence=attributes["fence"],
            changes=attributes["changes"],
            run_number=attributes["run_number"],
            published=attributes["published"],
            data_run_number=attributes["data_run_number"],
            publishing=None if publishing is None else RunKey.parse(publishing),
            lease=lease,
            contexts=contexts_of(attributes["contexts"]),
            staging=tuple(attributes["staging"]),
            cleaning=None if cleaning is None else payload_of(cleaning),
            protected=bool(attributes.get("protected", False)),
        )


def contexts_value(contexts: Mapping[str, ContextState]) -> Attributes:
    """Return contexts as one map attribute."""
    return {ctx: _context_value(state) for ctx, state in contexts.items()}


def _context_value(state: ContextState) -> Attributes:
    value: Attributes = {"kind": state.kind, "fingerprint": state.fingerprint, "run": str(state.run)}
    value["watermark"] = state.watermark
    if state.set_in is not None:
        value["set_in"] = state.set_in
    return value


def contexts_of(value: Mapping[str, Any]) -> dict[str, ContextState]:
    """Return the contexts that a map attribute holds."""
    return {
        ctx: ContextState(v["kind"], v["fingerprint"], RunKey.parse(v["run"]), v["watermark"], v.get("set_in"))
        for ctx, v in value.items()
    }


# ---- run


def payload_value(payload: Payload) -> Attributes:
    """Return a payload as a map attribute."""
    value: Attributes = {"sha256": payload.sha256, "bytes": payload.size_bytes}
    if payload.inline is not None:
        value["inline"] = payload.inline
    if payload.chunks is not None:
        value["chunks"] = payload.chunks
    return value


def payload_of(value: Mapping[str, Any]) -> Payload:
    """Return the payload that a map attribute holds."""
    return Payload(value["sha256"], value["bytes"], value.get("inline"), value.get("chunks"))


def plan_attribute(ctx: str, plan: PlanEntry) -> Attributes:
    """Return the stored plan of one context, as an attribute of its own name."""
    value: Attributes = {
        "kind": plan.kind,
        "body": payload_value(plan.body),
        "facts": dict(plan.facts),
        "fingerprint": plan.fingerprint,
    }
    return {_PLAN + ctx: value}


def output_attribute(name: str, output: OutputEntry) -> Attributes:
    """Return one output, as an attribute of its own name."""
    value: Attributes = {
        "sink": output.sink,
        "target": output.target,
        "place": output.place,
        "facts": dict(output.facts),
    }
    if output.publish is not None:
        value["publish"] = payload_value(output.publish)
    if output.delete is not None:
        value["delete"] = payload_value(output.delete)
    if output.schema is not None:
        value["schema"] = payload_value(output.schema)
    if output.replaced is not None:
        value["replaced"] = payload_value(output.replaced)
    return {_OUTPUT + name: value}


def position_attribute(ctx: str, position: Payload) -> Attributes:
    """Return the position of one context after a run, as an attribute of its own name."""
    return {_POSITION + ctx: payload_value(position)}


def schema_attribute(ctx: str, schema: Payload) -> Attributes:
    """Return the schema with which a context was read, as an attribute of its own name."""
    return {_SCHEMA + ctx: payload_value(schema)}


def run_attributes(run: Run) -> Attributes:
    """Return what a run is from its first write on: who makes it, and against which state."""
    attributes: Attributes = {
        "state": run.state.value,
        "epoch": run.epoch,
        "run_id": run.run_id,
        "attempt": run.attempt,
        "planned_at": run.planned_at,
        "base_version": run.base_version,
        "revision": run.revision,
        "changes": run.changes,
        "fences": list(run.fences),
        "is_last": run.is_last,
        "option": run.option,
        "runtime_version": run.runtime_version,
    }
    for ctx, plan in run.plans.items():
        attributes |= plan_attribute(ctx, plan)
    for name, output in run.outputs.items():
        attributes |= output_attribute(name, output)
    return attributes


def run_of(key: RunKey, attributes: Mapping[str, Any]) -> Run:
    """Return the run that the attributes hold."""
    with _Reading(f"RUN {key}"):
        return Run(
            key=key,
            state=RunState(attributes["state"]),
            epoch=attributes["epoch"],
            run_id=attributes["run_id"],
            attempt=attributes["attempt"],
            planned_at=attributes["planned_at"],
            base_version=attributes["base_version"],
            revision=attributes["revision"],
            changes=attributes["changes"],
            fences=tuple(attributes["fences"]),
            is_last=attributes["is_last"],
            is_empty=attributes.get("is_empty", False),
            option=attributes["option"],
            plans={ctx: _plan_of(v) for ctx, v in _named(attributes, _PLAN)},
            outputs={name: _output_of(v) for name, v in _named(attributes, _OUTPUT)},
            positions={ctx: payload_of(v) for ctx, v in _named(attributes, _POSITION)},
            schemas={ctx: payload_of(v) for ctx, v in _named(attributes, _SCHEMA)},
            contexts=contexts_of(attributes.get("contexts", {})),
            edges=attributes.get("edges", {}),
            metrics=attributes.get("metrics", {}),
            version=attributes.get("version"),
            data_run_number=attributes.get("data_run_number", 0),
            committed_at=attributes.get("committed_at"),
            published_at=attributes.get("published_at"),
            replayed_by=attributes.get("replayed_by"),
            error=attributes.get("error"),
            runtime_version=attributes.get("runtime_version"),
        )


def _named(attributes: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    return ((name.removeprefix(prefix), v) for name, v in attributes.items() if name.startswith(prefix))


def _plan_of(value: Mapping[str, Any]) -> PlanEntry:
    return PlanEntry(value["kind"], payload_of(value["body"]), value["facts"], value["fingerprint"])


def _output_of(value: Mapping[str, Any]) -> OutputEntry:
    lists = {name: payload_of(value[name]) for name in ("publish", "delete", "schema", "replaced") if name in value}
    return OutputEntry(value["sink"], value["target"], value["place"], value["facts"], **lists)


# ---- execution, line, edge


def execution_of(run_id: str, attributes: Mapping[str, Any]) -> Execution:
    """Return the execution that the attributes hold."""
    with _Reading(f"EXEC {run_id}"):
        return Execution(
            run_id=run_id,
            attempt=attributes.get("attempt", 0),
            killed_attempt=attributes.get("killed_attempt", 0),
            first_run=attributes.get("first_run"),
            last_run=attributes.get("last_run"),
            base_run=attributes.get("base_run", 0),
            is_finished=attributes.get("finished", False),
            replaying=attributes.get("replaying"),
            dag_id=attributes.get("dag_id"),
            task_id=attributes.get("task_id"),
            dag_run_id=attributes.get("dag_run_id"),
            logical_date=attributes.get("logical_date"),
            taken_nonce=attributes.get("taken_nonce"),
        )


def line_attributes(line: Line) -> Attributes:
    """Return a line as attributes."""
    return {"epoch": line.epoch, "parent": line.parent, "kept": line.kept, "start": line.start}


def line_of(attributes: Mapping[str, Any]) -> Line:
    """Return the line that the attributes hold."""
    with _Reading("LINE"):
        return Line(attributes["epoch"], attributes["parent"], attributes["kept"], attributes["start"])


def turning_attributes(turning: Turning) -> Attributes:
    """Return a line, with what began it, as attributes."""
    attributes = line_attributes(turning.line) | {"kind": turning.kind, "fence": turning.fence}
    attributes |= {"contexts_before": contexts_value(turning.contexts), "clean": turning.is_clean}
    attributes["data_run_number_before"] = turning.data_run_number
    if turning.dropped is not None:
        attributes["dropped"] = str(turning.dropped)
    for ctx, position in turning.positions.items():
        attributes |= position_attribute(ctx, position)
    return attributes


def turning_of(attributes: Mapping[str, Any]) -> Turning:
    """Return the line, with what began it, that the attributes hold."""
    with _Reading("LINE"):
        dropped = attributes.get("dropped")
        return Turning(
            line_of(attributes),
            attributes["kind"],
            attributes["fence"],
            contexts_of(attributes["contexts_before"]),
            attributes["data_run_number_before"],
            None if dropped is None else RunKey.parse(dropped),
            attributes["clean"],
            {ctx: payload_of(v) for ctx, v in _named(attributes, _POSITION)},
        )


def edge_attributes(edge: Edge) -> Attributes:
    """Return an edge as attributes."""
    return {
        "run_number": edge.run_number,
        "epoch": edge.epoch,
        "changes": edge.changes,
        "contexts": dict(edge.contexts),
        "updated_at": edge.updated_at,
    }


def edge_of(consumer: str, attributes: Mapping[str, Any]) -> Edge:
    """Return the edge that the attributes hold."""
    with _Reading(f"DOWN {consumer}"):
        return Edge(
            consumer,
            attributes["run_number"],
            attributes["epoch"],
            attributes["changes"],
            attributes["contexts"],
            attributes["updated_at"],
        )


class _Reading:
    """Turns a missing or mistyped attribute into an error that names the item."""

    def __init__(self, item: str) -> None:
        self._item = item

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyError | ValueError | TypeError | AttributeError):
            raise StateCorruptError(
                f"the item {self._item} of the state table can't be read ({type(error).__name__}: {error}). Nothing "
                "was changed. Restore it from a backup, or reset the job."
            ) from error
