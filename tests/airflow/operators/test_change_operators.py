"""The operators that change where a job stands: what they do, what they refuse, and that they do it once."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, task

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.core.errors import ChangedMeanwhileError, JobBusyError, OptionError
from airflow_bookmarks.core.text.identity import Identity, Signature
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import approve, protect, requests
from airflow_bookmarks.lifecycle.changes.change import apply, reset
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.operators.change import (
    BookmarkRelocateOperator,
    BookmarkRenameContextOperator,
    BookmarkResetOperator,
    BookmarkRewindOperator,
    BookmarkSetOperator,
    BookmarkSetStateOperator,
    BookmarkUndoOperator,
)
from tests.airflow.compat import DagSerialization
from tests.airflow.conftest import Player, World, connect

APPLY, PREVIEW = "airflow_bookmarks.operators.change.apply", "airflow_bookmarks.operators.change.preview"
STARTED = datetime(2026, 5, 3, tzinfo=UTC)
ADA = Identity("ada", True, "os")
BOB = Identity("bob", True, "airflow")
WHY: dict[str, Any] = {"task_id": "change", "job": "copy", "reason": "wrong delivery"}


def told(attempt: int = 1, *, first: int = 1, retries: int = 0, started: datetime = STARTED) -> Any:
    """Return what Airflow hands to `execute`, as far as the operators look at it."""
    ti = SimpleNamespace(
        dag_id="ops",
        task_id="change",
        run_id="manual__1",
        map_index=-1,
        try_number=attempt,
        max_tries=first + retries - 1,
    )
    return {"ti": ti, "dag_run": SimpleNamespace(start_date=started)}


def runs(world: World, count: int = 3) -> None:
    """Make so many runs of the job `copy`, each with one file of its own, dated a day apart."""
    for number in range(1, count + 1):
        world.shop.put(f"{number}.txt", f"line {number}", seconds=1_700_000_000 + 86_400 * number)
        world.shop.run("copy")


def epochs(world: World) -> list[str]:
    """Return the kinds of change that were made."""
    return [str(event["kind"]) for event in world.store.events("copy")]


# ---- what they do


def test_reset_lets_the_next_run_read_everything(world: World) -> None:
    runs(world)

    done = BookmarkResetOperator(**WHY).execute(told())

    assert (done["changed"], done["change"], done["undone_run_count"]) == (True, "reset", 3)
    assert world.shop.run("copy")[0] == ["line 1", "line 2", "line 3"]


@pytest.mark.parametrize("point", [{"to_run": 1}, {"to_run": "1"}, {"to_run": "manual/1"}])
def test_rewind_to_a_run_lets_the_next_run_read_what_came_after_it(world: World, point: dict[str, Any]) -> None:
    runs(world)

    done = BookmarkRewindOperator(**WHY, **point).execute(told())

    assert (done["to_run"], done["undone_run_count"]) == (1, 2)
    assert world.shop.run("copy")[0] == ["line 2", "line 3"]


def test_rewind_to_a_time_keeps_what_had_committed_by_then(world: World) -> None:
    runs(world)
    at = datetime.fromisoformat(BookmarkHook().history("copy")[1]["committed_at"])

    assert BookmarkRewindOperator(**WHY, to_time=at, dry_run=True).execute(told())["to_run"] == 2
    assert BookmarkRewindOperator(**WHY, to_time=at.isoformat()).execute(told())["to_run"] == 2


def test_rewind_to_a_watermark_keeps_what_is_at_or_below_it(world: World) -> None:
    runs(world)
    (mark,) = BookmarkHook().history("copy")[0]["watermark"].values()

    assert BookmarkRewindOperator(**WHY, to_watermark=mark).execute(told())["to_run"] == 1


def test_set_puts_a_context_where_no_run_left_it_and_warns_of_what_is_never_read(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    runs(world, 1)
    world.shop.put("late.txt", "late")

    BookmarkSetOperator(**WHY, ctx="raw", value="now").execute(told())

    assert world.shop.run("copy")[0] == []
    (warned,) = [each.getMessage() for each in caplog.records if "NEVER READ" in each.getMessage()]
    assert "1 file, 5 bytes that context 'raw' has not read yet" in warned
    assert {each.levelname for each in caplog.records if "NEVER READ" in each.getMessage()} == {"WARNING"}


def test_set_state_sets_any_json_value_and_its_preview_is_in_the_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    runs(world, 1)
    caplog.set_level("INFO")

    done = BookmarkSetStateOperator(**WHY, state="cursor", value={"page": 3}).execute(told())

    assert (done["changed"], done["change"]) == (True, "set-state")
    assert BookmarkHook().get("copy")["state"] == {"cursor": '{"page": 3}'}
    assert any('bookmark copy: job.state cursor: - -> {"page": 3}' in message for message in caplog.messages)


def test_relocate_lets_files_count_as_read_in_another_folder(world: World) -> None:
    runs(world)
    moved = world.shop.root / "moved"
    shutil.copytree(world.shop.raw, moved)
    roots: dict[str, Any] = {"from_root": str(world.shop.raw), "to_root": str(moved)}

    seen = BookmarkRelocateOperator(**WHY, **roots, ctx="raw", dry_run=True).execute(told())
    assert seen["moved"]["same"] == 3
    assert BookmarkRelocateOperator(**WHY, **roots, ctx="raw").execute(told())["changed"]
    assert BookmarkHook().get("copy")["contexts"]["raw"]["source"] == f"files:{moved}"


def test_context_is_renamed(world: World) -> None:
    runs(world, 1)

    BookmarkRenameContextOperator(**WHY, ctx="raw", to_ctx="flights").execute(told())

    assert list(BookmarkHook().get("copy")["contexts"]) == ["flights"]


def test_preview_of_a_change_is_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    runs(world)
    caplog.set_level("INFO")

    BookmarkRewindOperator(**WHY, to_run=1).execute(told())

    assert "2 runs are undone (2, 3)" in caplog.text
    assert "would hold rows twice" in caplog.text


def test_undo_takes_the_last_change_back(world: World) -> None:
    runs(world)
    reset(world.store, "copy", reason="r", who="w")

    done = BookmarkUndoOperator(**WHY).execute(told())

    assert done["change"] == "undo"
    assert world.shop.run("copy")[0] == []


def test_some_contexts_go_back_alone(world: World) -> None:
    runs(world)

    done = BookmarkResetOperator(**WHY, contexts=["raw"]).execute(told())

    assert (done["undone_run_count"], done["watermarks"]["raw"]["after"]) == (0, None)


def test_who_and_why_are_kept(world: World) -> None:
    runs(world)

    BookmarkResetOperator(**WHY).execute(told())

    (event,) = BookmarkHook().get("copy")["changes"]
    assert event["why"] == "wrong delivery"
    assert event["who"].startswith("ops/manual__1/change (try 1, ")


# ---- preview, expected version, condition


def test_dry_run_says_what_it_would_do_and_changes_nothing(world: World) -> None:
    runs(world)

    seen = BookmarkRewindOperator(**WHY, to_run=1, dry_run=True).execute(told())

    assert (seen["undone_runs"], seen["undone_run_count"], seen["read_again"]["files"]) == ([2, 3], 2, 2)
    assert json.loads(json.dumps(seen)) == seen
    assert epochs(world) == []


def test_preview_of_many_runs_stays_small(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(world)
    monkeypatch.setattr("airflow_bookmarks.operators.change._SHOWN_RUNS", 1)

    seen = BookmarkResetOperator(**WHY, dry_run=True).execute(told())

    assert (seen["undone_runs"], seen["undone_run_count"]) == ([1], 3)


def test_change_is_refused_for_good_when_the_job_moved_since_the_preview(world: World) -> None:
    runs(world)
    seen = BookmarkResetOperator(**WHY, dry_run=True).execute(told())
    world.shop.run("copy")

    with pytest.raises(AirflowFailException, match="not 3 any more"):
        BookmarkResetOperator(**WHY, expected_version=str(seen["version"])).execute(told())

    assert epochs(world) == []


@pytest.mark.parametrize(("answer", "made"), [(True, ["reset"]), (False, [])])
def test_condition_decides_by_the_preview(world: World, answer: bool, made: list[str]) -> None:
    runs(world)
    asked: list[Any] = []

    def decide(context: Any, seen: dict[str, Any]) -> bool:
        asked.append((context["ti"].task_id, seen["undone_run_count"]))
        return answer

    done = BookmarkResetOperator(**WHY, condition=decide).execute(told())

    assert (asked, done["changed"], epochs(world)) == ([("change", 3)], answer, made)


def test_condition_has_to_say_true_or_false(world: World) -> None:
    runs(world)

    with pytest.raises(AirflowFailException, match="returned 'no', and True or False was expected"):
        BookmarkResetOperator(**WHY, condition=lambda context, seen: "no").execute(told())

    assert epochs(world) == []


# ---- once for a series of tries


def test_retry_returns_what_the_lost_try_has_done(world: World) -> None:
    runs(world)
    first = BookmarkRewindOperator(**WHY, to_run=1, retries=2).execute(told(retries=2))
    world.shop.run("copy")

    again = BookmarkRewindOperator(**WHY, to_run=1, retries=2).execute(told(2, retries=2))

    assert epochs(world) == ["rewind"]
    same = ("job", "change", "changed", "to_run", "epoch", "version", "watermarks")
    assert {name: again[name] for name in same} == {name: first[name] for name in same}


def test_retry_finds_its_change_also_with_the_version_it_was_previewed_against(world: World) -> None:
    runs(world)
    BookmarkResetOperator(**WHY, expected_version=3, retries=1).execute(told(retries=1))

    again = BookmarkResetOperator(**WHY, expected_version=3, retries=1).execute(told(2, retries=1))

    assert again["changed"]
    assert epochs(world) == ["reset"]


def test_try_that_was_taken_for_dead_does_not_change_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(world)

    def overtaken(*args: Any, **terms: Any) -> Any:
        monkeypatch.setattr(APPLY, apply)
        BookmarkResetOperator(**WHY, retries=1).execute(told(2, retries=1))
        return apply(*args, **terms)

    monkeypatch.setattr(APPLY, overtaken)
    late = BookmarkResetOperator(**WHY, retries=1).execute(told(1, retries=1))

    assert late["version"] == {"before": 3, "after": 4}
    assert epochs(world) == ["reset"]


def test_clear_makes_the_change_again(world: World) -> None:
    runs(world)
    BookmarkResetOperator(**WHY).execute(told())
    world.shop.run("copy")

    BookmarkResetOperator(**WHY).execute(told(2, first=2))

    assert epochs(world) == ["reset", "reset"]


def test_retry_finds_its_change_after_the_file_has_lowered_the_retries(world: World) -> None:
    runs(world)
    BookmarkResetOperator(**WHY, retries=3).execute(told(1, retries=3))

    BookmarkUndoOperator(**WHY, retries=1).execute(told(2, retries=3))

    assert epochs(world) == ["reset"]


def test_clear_makes_the_change_again_after_the_file_has_raised_the_retries(world: World) -> None:
    runs(world)
    BookmarkResetOperator(**WHY, retries=1).execute(told(1, retries=1))
    world.shop.run("copy")

    BookmarkResetOperator(**WHY, retries=2).execute(told(2, first=2, retries=1))

    assert epochs(world) == ["reset", "reset"]


@pytest.mark.parametrize(("first", "made"), [(1, ["reset"]), (2, ["reset", "reset"])], ids=["retry", "clear"])
def test_mark_of_an_earlier_version_is_read_by_the_retries_of_the_file(
    world: World, first: int, made: list[str]
) -> None:
    runs(world)
    earlier = f"ops/manual__1/change (try 1, DAG run of {to_text(STARTED)})"
    reset(world.store, "copy", reason="wrong delivery", who=Signature(earlier, "task"))

    BookmarkResetOperator(**WHY, retries=1).execute(told(2, first=first, retries=1))

    assert epochs(world) == made


def test_clear_with_the_version_of_the_preview_is_refused(world: World) -> None:
    runs(world)
    BookmarkResetOperator(**WHY, expected_version=3).execute(told())

    with pytest.raises(AirflowFailException, match="not 3 any more"):
        BookmarkResetOperator(**WHY, expected_version=3).execute(told(2, first=2))


def test_dag_run_that_was_made_again_under_its_old_id_makes_its_own_change(world: World) -> None:
    runs(world)
    BookmarkResetOperator(**WHY, retries=1).execute(told(1, retries=1))

    BookmarkResetOperator(**WHY, retries=1).execute(told(2, retries=1, started=STARTED + timedelta(hours=1)))

    assert epochs(world) == ["reset", "reset"]


def test_job_that_moves_between_look_and_change_is_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(world)

    def while_it_runs(*args: Any) -> Any:
        monkeypatch.setattr(PREVIEW, preview)
        seen = preview(*args)
        world.shop.run("copy")
        return seen

    monkeypatch.setattr(PREVIEW, while_it_runs)

    assert BookmarkResetOperator(**WHY).execute(told())["undone_run_count"] == 4
    assert epochs(world) == ["reset"]


def test_job_that_never_rests_is_left_to_a_retry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(world)

    def while_it_runs(*args: Any) -> Any:
        seen = preview(*args)
        world.shop.run("copy")
        return seen

    monkeypatch.setattr(PREVIEW, while_it_runs)

    with pytest.raises(ChangedMeanwhileError):
        BookmarkResetOperator(**WHY).execute(told())


# ---- who may


def test_job_that_is_held_is_left_to_a_retry(world: World) -> None:
    runs(world)
    world.shop.begin("copy")

    with pytest.raises(JobBusyError):
        BookmarkResetOperator(**WHY).execute(told())

    assert BookmarkResetOperator(**WHY, force=True).execute(told())["changed"]


def test_protected_job_is_not_changed_and_the_task_says_how_to_ask(world: World) -> None:
    runs(world)
    protect(world.store, "copy", reason="prod", who=ADA)

    with pytest.raises(AirflowFailException, match="request=True"):
        BookmarkResetOperator(**WHY).execute(told())

    assert epochs(world) == ["protect"]


def test_request_waits_for_another_person(world: World) -> None:
    runs(world)
    protect(world.store, "copy", reason="prod", who=ADA)

    asked = BookmarkResetOperator(**WHY, request=True).execute(told())

    assert (asked["changed"], asked["state"], asked["preview"]["undone_run_count"]) == (False, "open", 3)
    approve(world.store, "copy", asked["request"], who=BOB)
    assert epochs(world)[-1] == "reset"


def test_retry_files_no_second_request(world: World) -> None:
    runs(world)
    protect(world.store, "copy", reason="prod", who=ADA)

    one = BookmarkResetOperator(**WHY, request=True, retries=1).execute(told(1, retries=1))
    two = BookmarkResetOperator(**WHY, request=True, retries=1).execute(told(2, retries=1))

    assert one == two
    assert [asked.id for asked in requests(world.store, "copy")] == [one["request"]]


@pytest.mark.parametrize("attempt", [1, 2], ids=["first_try", "retry"])
def test_request_shows_no_value_of_job_state_where_the_connection_hides_them(
    world: World, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    runs(world, 1)
    BookmarkSetStateOperator(**WHY, state="cursor", value="a secret").execute(told())
    protect(world.store, "copy", reason="prod", who=ADA)
    connect(monkeypatch, store=world.store_uri, hide_state="true")
    operator = BookmarkSetStateOperator(**WHY, state="cursor", value="another secret", request=True, retries=1)

    asked = [operator.execute(told(number, first=2, retries=1)) for number in range(2, attempt + 2)][-1]

    assert asked["preview"]["state"] == {"cursor": {"before": "(hidden)", "after": "(hidden)"}}
    assert "secret" not in json.dumps(asked)


def test_job_that_is_not_protected_is_changed_at_once(world: World) -> None:
    runs(world)

    assert BookmarkResetOperator(**WHY, request=True).execute(told())["changed"]


# ---- what is refused without a retry


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BookmarkResetOperator(task_id="change", job="copy", reason=" "), "reason="),
        (lambda: BookmarkResetOperator(task_id="change", job="copy", reason="None"), "its template gave nothing"),
        (lambda: BookmarkResetOperator(task_id="change", job="copy", reason="", dry_run=True), "reason="),
        (lambda: BookmarkResetOperator(task_id="change", job="cpoy", reason="r"), "no bookmark named 'cpoy'"),
        (lambda: BookmarkResetOperator(task_id="change", job="../x", reason="r"), "can't be the name of a job"),
        (lambda: BookmarkResetOperator(**WHY, expected_version="None"), "its template gave nothing"),
        (lambda: BookmarkResetOperator(**WHY, expected_version="latest"), "expected a number"),
        (
            lambda: BookmarkResetOperator(**WHY, expected_version={"job": "other", "version": 3}),
            "a preview of job 'other'",
        ),
        (lambda: BookmarkResetOperator(**WHY, contexts=["no"]), "has no context 'no'"),
        (lambda: BookmarkResetOperator(**WHY, contexts="raw"), "expected a list of names"),
        (lambda: BookmarkResetOperator(**WHY, contexts=["raw"], clean=True), "nothing to clean"),
        (lambda: BookmarkRewindOperator(**WHY, to_run=9), "no committed run '9'"),
        (lambda: BookmarkRewindOperator(**WHY, to_run=""), "its template gave nothing"),
        (lambda: BookmarkRewindOperator(**WHY, to_time="yesterday"), "no ISO 8601 time"),
        (lambda: BookmarkRewindOperator(**WHY, to_time="0001-01-01T00:00:00+14:00"), "no ISO 8601 time"),
        (lambda: BookmarkRewindOperator(**WHY, to_time="2026-01-01T00:00:00"), "without a zone"),
        (lambda: BookmarkSetOperator(**WHY, ctx="raw", value="soon"), "soon"),
        (lambda: BookmarkUndoOperator(**WHY), "to take back"),
    ],
)
def test_what_no_retry_mends_fails_the_task_for_good(world: World, make: Callable[[], BaseOperator], said: str) -> None:
    runs(world)

    with pytest.raises(AirflowFailException) as raised:
        make().execute(told())

    assert said in str(raised.value)
    assert epochs(world) == []


@pytest.mark.parametrize("points", [{}, {"to_run": 1, "to_time": "2026-01-01T00:00:00Z"}])
def test_rewind_takes_exactly_one_point(points: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="exactly one of"):
        BookmarkRewindOperator(**WHY, **points)


def test_condition_has_to_be_a_function() -> None:
    with pytest.raises(OptionError, match="expected a function"):
        BookmarkResetOperator(**WHY, condition="{{ params.reset }}")


def test_job_that_has_not_run_yet_may_be_nothing_to_change(world: World) -> None:
    nothing = {"job": "copy", "changed": False}

    seen = BookmarkResetOperator(**WHY, missing_ok=True, dry_run=True).execute(told())

    assert seen == nothing
    assert BookmarkResetOperator(**WHY, missing_ok=True, expected_version=seen).execute(told()) == nothing


# ---- in a DAG


def dag_of() -> DAG:
    # Airflow 3.1 keeps in memory how it has once seen a DAG of this name.
    return DAG(f"ops_{uuid.uuid4().hex[:8]}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC))


def test_preview_is_handed_on_by_xcom(world: World, player: Player) -> None:
    runs(world)
    with dag_of() as dag:
        what: dict[str, Any] = {"job": "{{ 'copy' }}", "to_run": "{{ 1 }}", "reason": "{{ run_id }} asks"}
        seen = BookmarkRewindOperator(task_id="preview", dry_run=True, **what)
        BookmarkRewindOperator(task_id="rewind", expected_version=seen.output, **what)

    played = player.play(dag)

    assert played.state == "success"
    assert played.xcom("rewind")["version"] == {"before": 3, "after": 4}
    assert epochs(world) == ["rewind"]
    assert str(world.store.events("copy")[0]["why"]).endswith(" asks")


def test_retry_in_airflow_finds_what_the_first_try_has_done(world: World, player: Player) -> None:
    runs(world)

    def lose(context: Any, result: Any) -> None:
        if context["ti"].try_number == 1:
            raise RuntimeError("the worker died before Airflow heard of the change")

    with dag_of() as dag:
        BookmarkUndoOperator(**WHY, retries=2, post_execute=lose)
    BookmarkResetOperator(**WHY).execute(told())

    played = player.play(dag)

    assert (played.state, played.tries("change")) == ("success", 2)
    assert epochs(world) == ["reset", "undo"]
    assert played.xcom("change")["version"] == {"before": 4, "after": 5}


def test_mapped_task_changes_each_job_once(world: World, player: Player) -> None:
    for job in ("one", "two"):
        world.shop.put("a.txt", "a")
        world.shop.run(job)
    with dag_of() as dag:
        BookmarkResetOperator.partial(task_id="reset", reason="r", missing_ok=True).expand(job=["one", "two", "none"])

    assert player.play(dag).state == "success"
    for job in ("one", "two"):
        (event,) = world.store.events(job)
        assert f"{dag.dag_id}/" in str(event["who"])


def test_change_can_be_mapped_over_what_a_task_found(world: World, player: Player) -> None:
    runs(world)

    @task
    def broken() -> list[dict[str, Any]]:
        return [{"job": "copy", "to_run": 2}]

    with dag_of() as dag:
        BookmarkRewindOperator.partial(task_id="rewind", reason="r").expand_kwargs(broken())

    assert player.play(dag).state == "success"
    assert epochs(world) == ["rewind"]


def test_default_arguments_of_the_dag_count(world: World) -> None:
    with DAG("ops", schedule=None, default_args={"reason": "by default", "bookmarks_conn_id": "mine", "clean": True}):
        made = BookmarkResetOperator(task_id="change", job="copy")

    assert (made.reason, made.bookmarks_conn_id, made.clean) == ("by default", "mine", True)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (BookmarkResetOperator, {"contexts": ["{{ params.ctx }}"]}),
        (BookmarkRewindOperator, {"to_time": "{{ ts }}", "contexts": ["raw"]}),
        (BookmarkSetOperator, {"ctx": "raw", "value": "{{ ds }}"}),
        (BookmarkUndoOperator, {}),
    ],
)
def test_template_fields_survive_serialisation(kind: Any, more: dict[str, Any]) -> None:
    with dag_of() as dag:
        made = kind(**WHY, **more, expected_version="{{ 1 }}", condition=lambda context, seen: True)

    read = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).get_task("change")

    fields = {name: getattr(made, name) for name in kind.template_fields}
    assert {name: getattr(read, name) for name in kind.template_fields} == fields
    assert {"job", "reason", "expected_version", *more} <= set(kind.template_fields)


def test_parsing_needs_no_store_and_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("the constructor looked at the store")

    monkeypatch.setattr(BookmarkHook, "get_conn", refuse)

    for kind in (BookmarkResetOperator, BookmarkUndoOperator):
        kind(**WHY)
