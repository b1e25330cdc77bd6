"""The items of the table: their keys, and how core's objects are encoded as attributes.

They are readable in the DynamoDB console: names in full, times as ISO 8601 UTC, run keys as `number.fence`, fractions
as text. They are decoded strictly (`store.codec.attribute`): whatever this package would not have written is damage,
and a StateCorruptError names the item and the attribute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.head import Failure, Head, Lease, Move
from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.core.run import (
    ContextState,
    Execution,
    OutputEntry,
    Payload,
    PlanEntry,
    Run,
    RunKey,
    RunState,
    SourceRef,
    StateEntry,
)
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import stored_error
from airflow_bookmarks.core.timeline import Timeline, TimelineChange
from airflow_bookmarks.store.codec.attribute import NUMBER_DIGITS, Fields, is_number
from airflow_bookmarks.store.codec.stats import is_map_of_numbers, metrics_of, stats_of
from airflow_bookmarks.store.table import Attributes, Key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

RUN_PREFIX, EXECUTION_PREFIX, LINE_PREFIX = "RUN#", "EXEC#", "LINE#"
SIDE_PREFIX, EVENT_PREFIX, EDGE_PREFIX = "SIDE#", "EVENT#", "DOWN#"
REPLACED_PREFIX = "replaced:"  # of attributes of side records: the published files that such a run replaces
SCHEMA = Key("SCHEMA", "SCHEMA")

LEASE_ATTRIBUTES = ("lease_run_id", "lease_attempt", "lease_since", "lease_until", "lease_nonce")
_PLAN, _OUTPUT, _POSITION, _SCHEMA = "plan:", "output:", "position:", "schema:"
# Of a run with so many contexts that one update can't name an attribute for each: a map of all of them.
POSITIONS, _SCHEMAS = "positions", "schemas"
ARTIFACTS = "artifacts"  # of a context in head, run and line items: the folders that belong to its position
_JOB_STATE = "job_state"

_RUN_SORT_KEY = re.compile(rf"{RUN_PREFIX}([0-9]{{{NUMBER_DIGITS}}})#([0-9]{{{NUMBER_DIGITS}}})")
_LINE_SORT_KEY = re.compile(rf"{LINE_PREFIX}([0-9]{{{NUMBER_DIGITS}}})")

# The remedy for a damaged item, by kind. Without its head or its lines, no verb can tell where a job stands.
_RESTORE = "Restore the table from a backup, or put the attribute right by hand."
_RESTORE_RUN = "Restore the table from a backup; or reset the job without clean, which needs no run that is done."
_RESTORE_EXECUTION = "Restore the table from a backup. Executions with another run id are not stopped by it."
_RESTORE_EDGE = "Restore the table from a backup; or reset that consumer, which writes it anew."


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
    """Return the run key that a sort key `RUN#<number>#<fence>` names.

    Raises:
        StateCorruptError: it has another form.
    """
    match = _RUN_SORT_KEY.fullmatch(sort_key)
    if match is None:
        raise _unknown_key(sort_key, "RUN#<run number>#<fence>")
    return RunKey(int(match[1]), int(match[2]))


def line_epoch(sort_key: str) -> int:
    """Return the epoch that a sort key `LINE#<epoch>` names.

    Raises:
        StateCorruptError: it has another form.
    """
    match = _LINE_SORT_KEY.fullmatch(sort_key)
    if match is None:
        raise _unknown_key(sort_key, "LINE#<epoch>")
    return int(match[1])


def _unknown_key(sort_key: str, form: str) -> StateCorruptError:
    return StateCorruptError(
        f"the item {sort_key!r} of the state table has a sort key that is not {form}, each number in {NUMBER_DIGITS} "
        "digits: something else wrote it. Nothing was changed. Remove it, or restore the table from a backup."
    )


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
    if head.owner is not None:
        attributes["owner"] = head.owner
    if head.shared_with:
        attributes["shared_with"] = list(head.shared_with)
    if head.commits:
        attributes |= commits_attribute(head.commits)
    if head.failure is not None:
        attributes |= failure_attribute(head.failure)
    if head.move is not None:
        attributes |= move_attribute(head.move)
    if head.lease is not None:
        attributes |= lease_attributes(head.lease)
    return attributes


def commits_attribute(commits: Sequence[datetime]) -> Attributes:
    """Return the times of the last commits, as an attribute of the head."""
    return {"commits": [to_text(at) for at in commits]}


def failure_attribute(failure: Failure) -> Attributes:
    """Return the last failure as an attribute of the head."""
    told: Attributes = {"at": to_text(failure.at), "run_id": failure.run_id, "attempt": failure.attempt}
    told |= {"version": failure.version, "error": failure.error}
    if failure.exit_code is not None:
        told["exit_code"] = failure.exit_code
    return {"failure": told}


def move_attribute(move: Move) -> Attributes:
    """Return the last change of the position as an attribute of the head."""
    return {"move": {"kind": move.kind, "at": to_text(move.at), "version": move.version}}


def _failure_of(fields: Fields) -> Failure:
    by = (fields.text("run_id"), fields.number("attempt"))
    code = fields.number("exit_code") if "exit_code" in fields else None
    return Failure(fields.moment("at"), *by, fields.number("version"), fields.text("error"), code)


def _move_of(fields: Fields) -> Move:
    return Move(fields.text("kind"), fields.moment("at"), fields.number("version"))


def head_of(attributes: Mapping[str, Any]) -> Head:
    """Return the head that the attributes hold.

    Raises:
        StateCorruptError: an attribute is missing, or is not what this package writes.
    """
    fields = Fields.of("HEAD", _RESTORE, attributes)
    if "protected" in fields and fields.values["protected"] is not True:
        fields.refuse("protected", "is neither true nor absent")
    epoch = fields.number("epoch")
    if epoch == 0:
        fields.refuse("epoch", "is no number from 1 on")
    return Head(
        version=fields.number("version"),
        epoch=epoch,
        fence=fields.number("fence"),
        changes=fields.number("changes"),
        run_number=fields.number("run_number"),
        published=fields.number("published"),
        data_run_number=fields.number("data_run_number"),
        publishing=fields.run_key("publishing") if "publishing" in fields else None,
        lease=_lease_of(fields),
        contexts=_contexts_of(fields.map("contexts")),
        staging=fields.places("staging"),
        cleaning=_payload_of(fields.map("cleaning")) if "cleaning" in fields else None,
        protected="protected" in fields,
        owner=fields.optional_text("owner"),
        shared_with=fields.texts("shared_with") if "shared_with" in fields else (),
        commits=fields.moments("commits") if "commits" in fields else (),
        failure=_failure_of(fields.map("failure")) if "failure" in fields else None,
        move=_move_of(fields.map("move")) if "move" in fields else None,
    )


def _lease_of(fields: Fields) -> Lease | None:
    if not any(name in fields for name in LEASE_ATTRIBUTES):
        return None
    return Lease(
        fields.text("lease_run_id"),
        fields.number("lease_attempt"),
        fields.moment("lease_since"),
        fields.moment("lease_until"),
        fields.text("lease_nonce"),
    )


def contexts_value(contexts: Mapping[str, ContextState]) -> Attributes:
    """Return contexts as one map attribute."""
    return {ctx: _context_value(state) for ctx, state in contexts.items()}


def _context_value(state: ContextState) -> Attributes:
    value: Attributes = {"kind": state.kind, "fingerprint": state.fingerprint, "run": str(state.run)}
    value["watermark"] = state.watermark
    if state.set_in is not None:
        value["set_in"] = state.set_in
    if state.watermark_column is not None:
        value["watermark_column"] = state.watermark_column
    if state.order is not None:
        value["order"] = state.order
    if state.moves:
        value["moves"] = [list(move) for move in state.moves]
    if state.named is not None:
        value["named"] = state.named
    if state.artifacts:
        value[ARTIFACTS] = list(state.artifacts)
    if state.set_aside is not None:
        value["set_aside"] = state.set_aside
    if state.missing is not None:
        value["missing"] = state.missing
    return value


def _contexts_of(fields: Fields) -> dict[str, ContextState]:
    return {ctx: _context_of(value) for ctx, value in fields.maps()}


def _context_of(fields: Fields) -> ContextState:
    kind, fingerprint, watermark = fields.text("kind"), fields.text("fingerprint"), fields.optional_text("watermark")
    _check_fingerprint(fields)
    by_run = watermark if kind == "upstream" else None
    if by_run is not None and not (by_run.isascii() and by_run.isdigit() and is_number(int(by_run))):
        fields.refuse("watermark", "is no run number")
    set_in = fields.number("set_in") if "set_in" in fields else None
    column = fields.optional_text("watermark_column")
    if "moves" in fields:
        fields.check("moves", _is_moves, "no list of pairs of paths")
    moves = tuple((str(old), str(new)) for old, new in fields.values.get("moves", ()))
    named = fields.text("named") if "named" in fields else None
    order = fields.text("order") if "order" in fields else None
    if ARTIFACTS in fields:
        fields.check(ARTIFACTS, _is_texts, "no list of URIs")
    artifacts = tuple(map(str, fields.values.get(ARTIFACTS, ())))
    set_aside, missing = (fields.size(name) if name in fields else None for name in ("set_aside", "missing"))
    key = fields.run_key("run")
    return ContextState(
        kind, fingerprint, key, watermark, set_in, column, moves, named, order, artifacts, set_aside, missing
    )


def _check_fingerprint(fields: Fields) -> None:
    # Of an upstream its name is the job that is read.
    found = fields.text("fingerprint")
    source = SourceRef.parse(found)
    if fields.text("kind") == "upstream" and (source is None or source.kind != "upstream" or not source.name):
        fields.refuse("fingerprint", "names no upstream job")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_moves(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(move, list) and len(move) == 2 and all(isinstance(path, str) for path in move) for move in value
    )


# ---- run


def payload_value(payload: Payload) -> Attributes:
    """Return a payload as a map attribute."""
    value: Attributes = {"sha256": payload.sha256, "bytes": payload.size_bytes}
    if payload.inline is not None:
        value["inline"] = payload.inline
    if payload.chunks is not None:
        value["chunks"] = payload.chunks
    return value


def payload_of(value: object) -> Payload:
    """Return the payload that a map attribute holds.

    Raises:
        StateCorruptError: it is no payload.
    """
    return _payload_of(Fields.of("that holds a payload", _RESTORE, value))


def _payload_of(fields: Fields) -> Payload:
    sha256, size = fields.sha256("sha256"), fields.size("bytes")
    if ("inline" in fields) == ("chunks" in fields):
        fields.refuse("inline", "is there beside 'chunks', or both are missing")
    if "inline" in fields:
        inline = fields.bytes("inline")
        if len(inline) != size:
            fields.refuse("bytes", f"is not the length of the {len(inline)} bytes that are there")
        return Payload(sha256, size, inline=inline)
    chunks = fields.number("chunks")
    if chunks == 0:
        fields.refuse("chunks", "is no number from 1 on")
    return Payload(sha256, size, chunks=chunks)


def plan_attribute(ctx: str, plan: PlanEntry) -> Attributes:
    """Return the stored plan of one context, as an attribute of its own name."""
    value: Attributes = {
        "kind": plan.kind,
        "body": payload_value(plan.body),
        "facts": dict(plan.stats),
        "fingerprint": plan.fingerprint,
    }
    return {_PLAN + ctx: value}


def output_attribute(name: str, output: OutputEntry) -> Attributes:
    """Return one output, as an attribute of its own name."""
    value: Attributes = {
        "sink": output.sink,
        "target": output.target,
        "place": output.place,
        "facts": dict(output.stats),
    }
    if output.publish is not None:
        value["publish"] = payload_value(output.publish)
    if output.delete is not None:
        value["delete"] = payload_value(output.delete)
    if output.schema is not None:
        value["schema"] = payload_value(output.schema)
    if output.replaced is not None:
        value["replaced"] = payload_value(output.replaced)
    if output.commits_by_itself:
        value["commits_by_itself"] = True
    if output.is_left_out:
        value["left_out"] = True
    return {_OUTPUT + name: value}


def position_attribute(ctx: str, position: Payload) -> Attributes:
    """Return the position of one context after a run, as an attribute of its own name."""
    return {_POSITION + ctx: payload_value(position)}


def state_attribute(state: StateEntry) -> Attributes:
    """Return `job.state` as an open run left it, as an attribute of the run."""
    return {_JOB_STATE: {"starts_from": state.starts_from, "values": payload_value(state.values)}}


def schema_attribute(ctx: str, schema: Payload) -> Attributes:
    """Return the schema with which a context was read, as an attribute of its own name."""
    return {_SCHEMA + ctx: payload_value(schema)}


def bodies_attributes(positions: Mapping[str, Payload], schemas: Mapping[str, Payload], most: int) -> Attributes:
    """Return the positions and schemas of the contexts of a run: each as an attribute of its own name.

    Only where these are more than `most`, all of a kind are one map: so what fits is read by earlier versions, too.
    """
    attributes: Attributes = {}
    for ctx, position in positions.items():
        attributes |= position_attribute(ctx, position)
    for ctx, schema in schemas.items():
        attributes |= schema_attribute(ctx, schema)
    if len(attributes) <= most:
        return attributes
    kinds = {POSITIONS: positions, _SCHEMAS: schemas}
    return {name: {ctx: payload_value(body) for ctx, body in bodies.items()} for name, bodies in kinds.items()}


def context_attributes(ctx: str, plan: PlanEntry) -> Attributes:
    """Return about what a run's item has of a context once it is committed, to tell how much room that takes.

    Position and schema are blobs, and little is measured that the plan does not say.
    """
    in_blob = Payload("0" * 64, 0, chunks=1)
    state = ContextState(plan.kind, plan.fingerprint, RunKey(0, 0), watermark="0" * 27, order="time", set_aside=0)
    attributes = plan_attribute(ctx, plan) | position_attribute(ctx, in_blob) | schema_attribute(ctx, in_blob)
    return attributes | {
        "contexts": contexts_value({ctx: state}),
        "metrics": {ctx: {**plan.stats, "watermark_before": state.watermark}},
    }


def run_attributes(run: Run) -> Attributes:
    """Return what is known of a run from its first write on: what makes it, and against which state."""
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
    if run.job_state is not None:
        attributes |= state_attribute(run.job_state)
    return attributes


def run_of(key: RunKey, attributes: Mapping[str, Any]) -> Run:
    """Return the run that the attributes hold.

    Raises:
        StateCorruptError: an attribute is missing, or is not what this package writes.
    """
    fields = Fields.of(f"RUN {key}", _RESTORE_RUN, attributes)
    state = _state_of(fields)
    return Run(
        key=key,
        state=state,
        epoch=fields.number("epoch"),
        run_id=fields.text("run_id"),
        attempt=fields.number("attempt"),
        planned_at=fields.moment_text("planned_at"),
        base_version=fields.number("base_version"),
        revision=fields.number("revision"),
        changes=fields.number("changes"),
        fences=fields.numbers("fences"),
        is_last=fields.flag("is_last"),
        is_empty=fields.flag("is_empty") if "is_empty" in fields else False,
        option=fields.text("option"),
        plans={ctx: _plan_of(value) for ctx, value in fields.named(_PLAN)},
        outputs={name: _output_of(value) for name, value in fields.named(_OUTPUT)},
        positions=_bodies_of(fields, _POSITION, POSITIONS),
        schemas=_bodies_of(fields, _SCHEMA, _SCHEMAS),
        contexts=_contexts_of(fields.map("contexts")) if "contexts" in fields else {},
        edges=_seen_edges_of(fields.map("edges")) if "edges" in fields else {},
        metrics=metrics_of(fields.map("metrics")) if "metrics" in fields else {},
        version=fields.optional_number("version"),
        data_run_number=fields.optional_number("data_run_number") or 0,
        committed_at=fields.optional_moment_text("committed_at"),
        published_at=fields.optional_moment_text("published_at"),
        replayed_by=fields.optional_text("replayed_by"),
        error=_error_of(fields),
        runtime_version=fields.optional_text("runtime_version"),
        job_state=_state_entry_of(fields.map(_JOB_STATE)) if _JOB_STATE in fields else None,
    )


def _bodies_of(fields: Fields, prefix: str, name: str) -> dict[str, Payload]:
    """Return what `bodies_attributes` wrote of one kind, in either form."""
    together = fields.map(name).maps() if name in fields else ()
    return {ctx: _payload_of(value) for ctx, value in (*fields.named(prefix), *together)}


def _state_entry_of(fields: Fields) -> StateEntry:
    return StateEntry(fields.optional_text("starts_from"), _payload_of(fields.map("values")))


def _error_of(fields: Fields) -> str | None:
    # Earlier versions stored it raw. A reader may have fewer rights than the driver that met it.
    error = fields.optional_text("error")
    return None if error is None else stored_error(error)


_STATES = {state.value: state for state in RunState}
_AT_COMMIT = ("version", "committed_at", "contexts", "data_run_number", "is_empty", "metrics", "edges")


def _state_of(fields: Fields) -> RunState:
    state = fields.text("state")
    if state not in _STATES:
        fields.refuse("state", f"is none of {', '.join(_STATES)}")
    for name in _AT_COMMIT if _STATES[state].is_committed else ():
        if fields.values.get(name) is None:
            fields.refuse(name, "is missing, and each commit writes it")
    if state == RunState.PUBLISHED:
        fields.moment("published_at")
    return _STATES[state]


def _plan_of(fields: Fields) -> PlanEntry:
    body, stats = _payload_of(fields.map("body")), stats_of(fields.map("facts"))
    _check_fingerprint(fields)
    return PlanEntry(fields.text("kind"), body, stats, fields.text("fingerprint"))


def _output_of(fields: Fields) -> OutputEntry:
    lists = {
        name: _payload_of(fields.map(name)) for name in ("publish", "delete", "schema", "replaced") if name in fields
    }
    stats = stats_of(fields.map("facts"))
    by_itself = fields.flag("commits_by_itself") if "commits_by_itself" in fields else False
    return OutputEntry(
        fields.text("sink"),
        fields.place("target"),
        fields.place("place"),
        stats,
        commits_by_itself=by_itself,
        is_left_out=fields.flag("left_out") if "left_out" in fields else False,
        publish=lists.get("publish"),
        delete=lists.get("delete"),
        schema=lists.get("schema"),
        replaced=lists.get("replaced"),
    )


def _seen_edges_of(fields: Fields) -> Mapping[str, Any]:
    for _, edge in fields.maps():
        _edge_of("", edge)
    return fields.values


# ---- execution, line, edge


_BESIDE_THE_MARK = ("attempt", "killed_attempt", "taken_nonce", "base_run", "first_run", "last_run")


def execution_of(run_id: str, attributes: Mapping[str, Any]) -> Execution:
    """Return the execution that the attributes hold.

    Raises:
        StateCorruptError: an attribute is missing, or is not what this package writes.
    """
    fields = Fields.of(f"EXEC {run_id}", _RESTORE_EXECUTION, attributes)
    if not any(name in fields for name in _BESIDE_THE_MARK):
        # Collected while another execution replayed its run, whose mark then noted only that it is finished.
        return Execution(run_id, attempt=0, is_finished=fields.flag("finished"))
    attempt = fields.number("attempt")
    is_taken = attempt > 0  # a kill leaves an item of an execution that never took the job
    return Execution(
        run_id=run_id,
        attempt=attempt,
        killed_attempt=fields.number("killed_attempt"),
        first_run=fields.optional_number("first_run"),
        last_run=fields.optional_number("last_run"),
        base_run=fields.number("base_run") if is_taken or "base_run" in fields else 0,
        is_finished=fields.flag("finished") if is_taken or "finished" in fields else False,
        replaying=fields.optional_number("replaying"),
        dag_id=fields.optional_text("dag_id"),
        task_id=fields.optional_text("task_id"),
        dag_run_id=fields.optional_text("dag_run_id"),
        logical_date=fields.optional_text("logical_date"),
        series=fields.optional_number("series"),
        taken_nonce=fields.text("taken_nonce") if is_taken or "taken_nonce" in fields else None,
    )


def line_attributes(line: Timeline) -> Attributes:
    """Return a line as attributes."""
    return {"epoch": line.epoch, "parent": line.parent, "kept": line.kept, "start": line.start}


def line_of(epoch: int, attributes: Mapping[str, Any]) -> Timeline:
    """Return the line of `epoch` that the attributes hold.

    Raises:
        StateCorruptError: an attribute is missing, or is not what this package writes.
    """
    return _line_of(_line_fields(epoch, attributes), epoch)


def _line_fields(epoch: int, attributes: Mapping[str, Any]) -> Fields:
    return Fields.of(f"LINE {epoch}", _RESTORE, attributes)


def _line_of(fields: Fields, epoch: int) -> Timeline:
    if fields.number("epoch") != epoch:
        fields.refuse("epoch", "is not that of its key")
    return Timeline(epoch, fields.number("parent"), fields.number("kept"), fields.number("start"))


def line_change_attributes(line_change: TimelineChange) -> Attributes:
    """Return a line, with what began it, as attributes."""
    attributes = line_attributes(line_change.line) | {"kind": line_change.kind, "fence": line_change.fence}
    attributes |= {"contexts_before": contexts_value(line_change.contexts), "clean": line_change.is_clean}
    attributes["data_run_number_before"] = line_change.data_run_number
    if line_change.dropped is not None:
        attributes["dropped"] = str(line_change.dropped)
    for ctx, position in line_change.positions.items():
        attributes |= position_attribute(ctx, position)
    return attributes


def line_change_of(epoch: int, attributes: Mapping[str, Any]) -> TimelineChange:
    """Return the line of `epoch`, with what began it, that the attributes hold.

    Raises:
        StateCorruptError: an attribute is missing, or is not what this package writes.
    """
    fields = _line_fields(epoch, attributes)
    return TimelineChange(
        _line_of(fields, epoch),
        fields.text("kind"),
        fields.number("fence"),
        _contexts_of(fields.map("contexts_before")),
        fields.number("data_run_number_before"),
        fields.run_key("dropped") if "dropped" in fields else None,
        fields.flag("clean"),
        {ctx: _payload_of(value) for ctx, value in fields.named(_POSITION)},
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
    """Return the edge that the attributes hold.

    Raises:
        StateCorruptError: an attribute is missing, or is not what this package writes.
    """
    return _edge_of(consumer, Fields.of(f"DOWN {consumer}", _RESTORE_EDGE, attributes))


def _edge_of(consumer: str, fields: Fields) -> Edge:
    contexts = fields.map("contexts").values
    fields.check("contexts", is_map_of_numbers, "no map of run numbers")
    return Edge(
        consumer,
        fields.number("run_number"),
        fields.number("epoch"),
        fields.number("changes"),
        contexts,
        fields.optional_moment_text("updated_at"),
    )
