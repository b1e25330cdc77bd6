"""Promise SEC-5: an item is read as this package wrote it, or it is damage that is named; nothing is guessed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.head import Failure, Head, Lease
from airflow_bookmarks.core.metadata.known import is_moment
from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.core.run import ContextState, OutputEntry, Payload, PlanEntry, Run, RunKey, RunState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.timeline import Timeline, TimelineChange
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.codec.attribute import run_key_of
from airflow_bookmarks.store.table import Attributes

AT = datetime(2013, 1, 31, 23, 59, 58, tzinfo=UTC)
THEN = to_text(AT)
INLINE = Payload("a" * 64, 3, inline=b"abc")
IN_BLOB = Payload("b" * 64, 400_000, chunks=2)
FILES = ContextState("files", "files:/raw", RunKey(3, 7), THEN, set_aside=2, missing=0)
UPSTREAM = ContextState("upstream", "upstream:copy", RunKey(3, 7), "12", set_in=4)
CONTEXTS = {"raw": FILES, "other": UPSTREAM}
FAILURE = Failure(AT, "dag/run/task", 2, 9, "SystemExit: 3", 3)
FACTS: dict[str, Any] = {
    "files": 1,
    "bytes": 3,
    "rows": None,
    "skipped": {"late": 2},
    "upstream": {"job": "copy", "output": None, "after": 0, "until": 2, "epoch": 1, "changes": 0, "runs": [1, 2],
                 "replaced": 0},
}  # fmt: skip


def head() -> Attributes:
    lease = Lease("dag/run/task", 2, AT, AT + timedelta(seconds=120), "f" * 32)
    return item.head_attributes(
        Head(9, 4, 8, 1, 3, 3, 3, RunKey(3, 7), lease, CONTEXTS, ("/out/_bookmarks",), IN_BLOB, True, failure=FAILURE)
    )


def run() -> Attributes:
    plan = PlanEntry("files", INLINE, FACTS, "files:/raw")
    output = OutputEntry("files", "/out", "/out/_bookmarks/3.7/out", {"mode": "append", "rows": 1}, INLINE, IN_BLOB)
    made = Run(
        RunKey(3, 7), RunState.PLANNED, 4, "dag/run/task", 1, THEN, 8, fences=(7,), plans={"raw": plan},
        outputs={"out": output}, runtime_version="1.0",
    )  # fmt: skip
    committed: Attributes = {"state": "PUBLISHED", "version": 9, "committed_at": THEN, "published_at": THEN}
    committed |= {"contexts": item.contexts_value(CONTEXTS), "data_run_number": 3, "is_empty": False}
    metrics: Attributes = {"contexts": {"raw": FACTS}, "seconds": {"plan": "0.1"}}
    committed["metrics"] = metrics | {"left_out": {"mapped": {"error records": 2}}}
    committed["edges"] = {"copy": {"run_number": 2, "epoch": 1, "changes": 0, "contexts": {"other": 2}}}
    committed |= item.position_attribute("raw", INLINE) | item.schema_attribute("raw", INLINE)
    return item.run_attributes(made) | committed


def large_run() -> Attributes:
    """Return a run of so many contexts that no update names an attribute for each."""
    few = {name: value for name, value in run().items() if not name.startswith(("position:", "schema:"))}
    return few | item.bodies_attributes({"raw": INLINE, "other": IN_BLOB}, {"raw": INLINE}, 2)


def execution() -> Attributes:
    found: Attributes = {"attempt": 2, "killed_attempt": 1, "taken_nonce": "f" * 32, "taken_at": THEN}
    found |= {"dag_id": "dag", "task_id": "task", "dag_run_id": "run", "logical_date": None, "finished": False}
    return found | {"series": 2, "base_run": 2, "first_run": 3, "last_run": 3, "replaying": 3}


def line_change() -> Attributes:
    return item.line_change_attributes(
        TimelineChange(Timeline(4, 3, 2, 5), "rewind", 8, CONTEXTS, 2, RunKey(5, 6), False, {"raw": INLINE})
    )


def edge() -> Attributes:
    return item.edge_attributes(Edge("cons", 2, 1, 0, {"raw": 2}, THEN))


KINDS: Mapping[str, tuple[Callable[[], Attributes], Callable[[Mapping[str, Any]], object]]] = {
    "HEAD": (head, item.head_of),
    "RUN": (run, lambda given: item.run_of(RunKey(3, 7), given)),
    "EXEC": (execution, lambda given: item.execution_of("dag/run/task", given)),
    "LINE": (line_change, lambda given: (item.line_of(4, given), item.line_change_of(4, given))),
    "DOWN": (edge, lambda given: item.edge_of("cons", given)),
}
JUNK: list[Any] = [
    None, "", 0, -1, True, False, [], {}, "x", "5", 10**25, [1], ["x"], {"a": 1}, {"a": {}}, "9999-99-99", "\0", 1.5,
    "0.0", "01.1", "1.1.1", 2**63, b"", b"x", "2013-01-31T23:59:58Z", "2013-01-31T23:59:58.000000+00:00", "A" * 64,
]  # fmt: skip


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, (*path, place))


def holder(value: Any, path: tuple[Any, ...]) -> Any:
    for part in path[:-1]:
        value = value[part]
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_item_as_it_was_written_is_read(kind: str) -> None:
    write, read = KINDS[kind]
    assert read(write()) == read(write())


def test_positions_and_schemas_are_read_in_either_form() -> None:
    bodies = {"raw": INLINE, "other": IN_BLOB}, {"raw": INLINE}
    apart, together = (item.bodies_attributes(*bodies, most) for most in (3, 2))
    assert apart.keys() == {"position:raw", "position:other", "schema:raw"}
    assert together.keys() == {"positions", "schemas"}
    for form in (apart, together):
        found = item.run_of(RunKey(3, 7), large_run() | {"positions": {}, "schemas": {}} | form)
        assert (found.positions, found.schemas) == bodies


@pytest.mark.parametrize("damage", JUNK)
def test_damage_of_many_positions_is_named(damage: Any) -> None:
    for name in ("positions", "schemas"):
        for value in (damage, {"raw": damage}):
            damaged = {**large_run(), name: value}
            if value == {}:
                continue  # a run of no context
            with pytest.raises(StateCorruptError, match=rf"item RUN .*{name}"):
                item.run_of(RunKey(3, 7), damaged)


@pytest.mark.parametrize("kind", KINDS)
def test_any_damage_is_named_or_harmless_and_never_another_error(kind: str) -> None:
    write, read = KINDS[kind]
    refused = 0
    for path in paths(write()):
        for junk in JUNK:
            damaged = copy.deepcopy(write())
            holder(damaged, path)[path[-1]] = junk
            try:
                read(damaged)
            except StateCorruptError as error:
                refused += 1
                assert f"item {kind}" in str(error)  # noqa: PT017 (one promise for hundreds of damages)
                assert "Nothing was read or changed" in str(error)  # noqa: PT017
    assert refused > 100


@pytest.mark.parametrize("kind", KINDS)
def test_missing_attribute_is_damage_unless_writers_leave_it_out(kind: str) -> None:
    write, read = KINDS[kind]
    left_out = set()
    for name in write():
        damaged = {key: value for key, value in write().items() if key != name}
        try:
            read(damaged)
        except StateCorruptError as error:
            assert repr(name) in str(error) or name in ("published_at",)  # noqa: PT017
        else:
            left_out.add(name)
    named = {name for name in write() if ":" in name}
    optional = {
        "HEAD": {"publishing", "cleaning", "protected", "failure"},
        "RUN": {"runtime_version"} | named,
        "EXEC": {"taken_at", "dag_id", "task_id", "dag_run_id", "logical_date", "series"}
        | {"first_run", "last_run", "replaying"},
        "LINE": {"dropped"} | named,
        "DOWN": {"updated_at"},
    }
    assert left_out == optional[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_neither_negative_nor_of_another_type(kind: str) -> None:
    write, read = KINDS[kind]
    for path in paths(write()):
        value = holder(write(), path)[path[-1]]
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        wrong: list[Any] = [-1, True, "1", 1.0, None, []]
        for junk in wrong:
            damaged = copy.deepcopy(write())
            holder(damaged, path)[path[-1]] = junk
            if junk is None and path[-1] in ("first_run", "last_run", "replaying", "rows", "series"):
                continue
            with pytest.raises(StateCorruptError):
                read(damaged)


def test_what_is_set_aside_and_missing_of_a_context_is_read_and_not_known_of_earlier_versions() -> None:
    written = item.contexts_value(CONTEXTS)
    assert {"set_aside", "missing"} <= set(written["raw"])  # type: ignore[arg-type]
    assert not {"set_aside", "missing"} & set(written["other"])  # type: ignore[arg-type]
    found = item.head_of(head()).contexts
    assert [(each.set_aside, each.missing) for each in found.values()] == [(2, 0), (None, None)]


def test_failure_of_an_earlier_version_has_no_exit_code() -> None:
    written = head()
    failure = written["failure"]
    assert isinstance(failure, dict)
    assert failure.pop("exit_code") == 3
    found = item.head_of(written).failure
    assert found == replace(FAILURE, exit_code=None)


@pytest.mark.parametrize("text", ["2020-01-01T00:00:00Z", "2020-01-01", "2020-01-01T00:00:00.000000+00:00", "", "soon"])
def test_lease_whose_end_was_typed_by_hand_in_another_spelling_is_damage(text: str) -> None:
    with pytest.raises(StateCorruptError, match=r"item HEAD .* 'lease_until' is no time"):
        item.head_of(head() | {"lease_until": text})


@pytest.mark.parametrize("name", item.LEASE_ATTRIBUTES)
def test_half_a_lease_is_damage(name: str) -> None:
    with pytest.raises(StateCorruptError, match=name):
        item.head_of({key: value for key, value in head().items() if key != name})


def test_execution_that_was_only_killed_has_not_been_taken() -> None:
    found = item.execution_of("x", {"attempt": 0, "killed_attempt": 1, "killed_at": THEN})
    assert (found.attempt, found.killed_attempt, found.taken_nonce) == (0, 1, None)


def test_execution_that_was_collected_before_the_mark_of_its_replay_has_not_been_taken() -> None:
    found = item.execution_of("x", {"finished": True})
    assert (found.attempt, found.is_finished, found.taken_nonce) == (0, True, None)


@pytest.mark.parametrize("sort_key", ["RUN#x", "RUN#1#2", "RUN#0000000001", "RUN#0000000001#0000000002#3", "RUN#"])
def test_run_under_a_sort_key_of_another_shape_is_damage(sort_key: str) -> None:
    with pytest.raises(StateCorruptError, match="sort key"):
        item.run_key(sort_key)


@pytest.mark.parametrize("sort_key", ["LINE#x", "LINE#2", "LINE#00000000002", "LINE#"])
def test_line_under_a_sort_key_of_another_shape_is_damage(sort_key: str) -> None:
    with pytest.raises(StateCorruptError, match="sort key"):
        item.line_epoch(sort_key)


def test_line_under_the_key_of_another_epoch_is_damage() -> None:
    with pytest.raises(StateCorruptError, match="'epoch' is not that of its key"):
        item.line_of(5, line_change())


@pytest.mark.parametrize("fingerprint", ["upstream", "upstream:", "files:/raw", ":copy"])
def test_plan_of_an_upstream_whose_job_it_does_not_name_is_damage(fingerprint: str) -> None:
    damaged = run()
    plan = damaged["plan:raw"]
    assert isinstance(plan, dict)
    damaged["plan:raw"] = {**plan, "kind": "upstream", "fingerprint": fingerprint}
    with pytest.raises(StateCorruptError, match="names no upstream job"):
        item.run_of(RunKey(3, 7), damaged)


@pytest.mark.parametrize("text", ["3.7", "0.0", "9999999999.1"])
def test_run_key_is_read_as_it_is_written(text: str) -> None:
    assert str(run_key_of(text)) == text


@pytest.mark.parametrize("text", ["03.7", "3.07", "3", "3.", ".7", "3.7.1", "-1.2", " 3.7", "\uff13.7", "", None, 3.7])
def test_run_key_in_any_other_spelling_is_none(text: object) -> None:
    assert run_key_of(text) is None


def test_moment_is_known_by_its_spelling_alone() -> None:
    random = Random(7)
    for _ in range(200):
        moment = AT + timedelta(microseconds=random.randrange(10**15))
        assert is_moment(to_text(moment))
        assert not is_moment(moment.isoformat())
