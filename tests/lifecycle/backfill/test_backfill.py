"""A job and everything downstream of it go back together: the plan, its refusals, and what is made of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    BackfillStoppedError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    FencedError,
    JobUnknownError,
    OptionError,
    RunUnknownError,
    StoreUnavailableError,
)
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.backfill.carry_out import BackfillOutcome, carry_out
from airflow_bookmarks.lifecycle.backfill.plan import BackfillPlan, BackfillStep, plan_backfill
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import (
    Change,
    apply,
    rename_context,
    reset,
    rewind,
    set_position,
    undo,
)
from airflow_bookmarks.lifecycle.changes.naming import rename
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.lease import LEASE_TIME
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop, unsound

TERMS: dict[str, Any] = {"reason": "a bad delivery", "who": "ada"}


def chain(shop: Shop, days: int = 4) -> None:
    """Let `clean` read files, `report` and `prices` read that, and `mail` read `report`: one run each for each day."""
    for day in range(days):
        shop.put(f"{day}.txt", f"row {day}")
        shop.run("clean")
        for job in ("report", "prices"):
            shop.run(job, upstream="clean")
        shop.run("mail", upstream="report")


def plan(shop: Shop, to_run: int | None = 2, job: str = "clean", **how: Any) -> BackfillPlan:
    clean = how.pop("clean", True)
    change = Change("reset", clean=clean) if to_run is None else Change("rewind", to_run=str(to_run), clean=clean)
    return plan_backfill(shop.store, {job: change}, **how)


def steps(planned: BackfillPlan) -> dict[str, BackfillStep]:
    return {step.job: step for step in planned.steps}


def goes_to(planned: BackfillPlan) -> dict[str, str | None]:
    return {step.job: step.change.to_run for step in planned.steps}


def rows(shop: Shop, *jobs: str) -> dict[str, int]:
    """Return how often each row is in the targets of some jobs, together."""
    counts = [shop.target_lines(job) for job in jobs]
    assert all(count == counts[0] for count in counts)
    return dict(counts[0])


def made(shop: Shop, planned: BackfillPlan) -> BackfillOutcome:
    return carry_out(shop.store, planned, **TERMS)


def test_readers_at_any_distance_go_back_each_after_what_it_reads(shop: Shop) -> None:
    chain(shop)
    planned = plan(shop)
    assert list(goes_to(planned)) == ["clean", "prices", "report", "mail"]
    assert set(goes_to(planned).values()) == {"2"}
    assert steps(planned)["mail"].because == {"report": 2}
    assert planned.refused == {}
    told = planned.as_dict()
    assert (told["jobs"], told["undone_run_count"], told["files_to_clean"]) == (4, 8, 8)
    assert told["read_again"]["files"] == 8


def test_all_rows_are_there_once_after_the_next_runs(shop: Shop) -> None:
    chain(shop)
    made(shop, plan(shop))
    shop.put("3.txt", "row 3 corrected", seconds=1_700_000_900)
    shop.run("clean")
    for job in ("report", "prices"):
        shop.run(job, upstream="clean")
    shop.run("mail", upstream="report")
    assert rows(shop, "clean", "report", "prices", "mail") == {
        "row 0": 1, "row 1": 1, "row 2": 1, "row 3 corrected": 1
    }  # fmt: skip
    assert unsound(shop.store) == []


def test_reset_takes_all_readers_to_before_their_first_run(shop: Shop) -> None:
    chain(shop)
    done = made(shop, plan(shop, None)).as_dict()
    assert {job: each["change"] for job, each in done["by_job"].items()} == dict.fromkeys(
        ("clean", "prices", "report", "mail"), "reset"
    )
    assert done["undo_in_order"] == ["mail", "report", "prices", "clean"]
    assert {shop.store.head(job).epoch for job in ("clean", "report", "prices", "mail")} == {2}


def test_reader_that_has_read_nothing_of_it_stays_and_so_does_what_reads_that(shop: Shop) -> None:
    chain(shop, 2)
    shop.put("2.txt", "row 2")
    shop.run("clean")
    shop.run("prices", upstream="clean")
    planned = plan(shop)
    assert goes_to(planned) == {"clean": "2", "prices": "2"}
    assert planned.unaffected == ("mail", "report") or planned.unaffected == ("report", "mail")
    made(shop, planned)
    assert shop.store.head("report").epoch == 1


def test_reader_of_two_that_go_back_goes_back_far_enough_for_both(shop: Shop) -> None:
    for day in range(3):
        shop.put(f"{day}.txt", f"row {day}")
        shop.run("one")
        shop.run("two")
        for upstream in ("one", "two"):  # two contexts of one job, in a run each
            run = shop.begin("both")
            run.plan(upstream, UpstreamSource(shop.store, "both", upstream))
            run.commit()
    planned = plan_backfill(
        shop.store, {"one": Change("rewind", to_run="2", clean=True), "two": Change("rewind", to_run="1", clean=True)}
    )
    both = steps(planned)["both"]
    assert both.because == {"one": 2, "two": 1}
    assert both.change.to_run == "3"  # its run 4 has read run 2 of "two"


def test_circle_is_refused(shop: Shop) -> None:
    chain(shop, 1)
    key = shop.store.keys("mail").edge("clean")
    edge = shop.store.edges("report")[0]
    shop.store.table.transact(
        [Update(key, set={"run_number": 1, "epoch": edge.epoch, "changes": edge.changes, "contexts": {}})]
    )
    with pytest.raises(ChangeRefusedError, match=r"in a circle.*clean"):
        plan(shop, None)


def test_repeating_it_goes_on_and_leaves_what_stands_there(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(shop)

    def failing(store: BookmarkStore, job: str, change: Change, **terms: Any) -> Any:
        if job == "report":
            raise StoreUnavailableError("the table does not answer")
        return apply(store, job, change, **terms)

    with monkeypatch.context() as broken:
        broken.setattr("airflow_bookmarks.lifecycle.backfill.carry_out.apply", failing)
        with pytest.raises(BackfillStoppedError, match=r"stopped at job 'report'.*does not answer") as stopped:
            made(shop, plan(shop))
    assert (stopped.value.done, stopped.value.left) == (("clean", "prices"), ("report", "mail"))
    again = plan(shop)
    assert [step.job for step in again.steps if step.stands] == ["clean"]
    assert goes_to(again) == {"clean": "2", "report": "2", "mail": "2"}
    done = made(shop, again)
    assert (list(done.jobs), done.unchanged) == (["report", "mail"], ("clean",))
    assert plan(shop).as_dict()["undone_run_count"] == 0


def test_backfill_without_clean_can_be_undone_the_last_one_first(shop: Shop) -> None:
    chain(shop)
    before = rows(shop, "mail")
    done = made(shop, plan(shop, clean=False)).as_dict()
    for job in done["undo_in_order"]:
        undo(shop.store, job, **TERMS)
    shop.run("clean")
    assert shop.run("mail", upstream="report")[0] == []
    assert rows(shop, "mail") == before


def test_job_that_changed_since_the_plan_refuses_all_of_it(shop: Shop) -> None:
    chain(shop)
    planned = plan(shop)
    rewind(shop.store, "mail", 3, **TERMS)
    with pytest.raises(ChangedMeanwhileError, match=r"'mail': not as in the plan .*Nothing was changed"):
        made(shop, planned)
    assert shop.store.head("clean").epoch == 1


def test_job_that_can_not_go_back_is_named_with_the_reason_and_stops_all(shop: Shop) -> None:
    chain(shop)
    protect(shop.store, "report", reason="money", who=Identity("ada", True, "airflow"))
    shop.begin("mail")
    planned = plan(shop)
    assert set(planned.refused) == {"report", "mail"}
    assert "is protected" in planned.refused["report"]
    assert steps(planned)["mail"].because == {"report": 2}  # looked at all the same
    with pytest.raises(ChangeRefusedError, match="2 of 4 jobs can't go back, so none did"):
        made(shop, planned)
    assert shop.store.head("clean").epoch == 1


def test_job_that_is_left_out_stays_and_so_does_what_reads_only_that(shop: Shop) -> None:
    chain(shop)
    protect(shop.store, "report", reason="money", who=Identity("ada", True, "airflow"))
    planned = plan(shop, leave=["report"])
    assert (list(goes_to(planned)), planned.left_out, planned.refused) == (["clean", "prices"], ("report",), {})
    made(shop, planned)
    assert shop.store.head("mail").epoch == 1


def test_output_that_is_kept_stays_and_is_told_to_come_twice(shop: Shop) -> None:
    chain(shop)
    planned = plan(shop, keep=["prices"])
    seen = steps(planned)["prices"].preview
    assert seen is not None
    assert (seen.to_clean, len(seen.twice)) == (0, 1)
    assert steps(planned)["report"].change.clean is True


def test_held_job_goes_back_by_force(shop: Shop) -> None:
    chain(shop)
    run = shop.begin("report")
    assert "report" in plan(shop).refused
    made(shop, plan(shop, force=True))
    assert shop.store.head("report").epoch == 2
    with pytest.raises(FencedError):
        run.commit()


def test_reader_whose_runs_were_collected_says_that_only_a_reset_fits(shop: Shop) -> None:
    chain(shop)
    collect(shop.store, jobs=["mail"], clock=lambda: datetime.now(UTC) + timedelta(days=1000))
    planned = plan(shop)
    assert "only a reset fits" in planned.refused["mail"]


def test_damaged_old_run_hinders_nobody_who_does_not_go_back_so_far(shop: Shop) -> None:
    chain(shop)
    damaged = shop.store.committed_run("report", 1)
    assert damaged is not None
    shop.store.table.transact([Update(shop.store.keys("report").run(damaged.key), set={"planned_at": 5})])
    planned = plan(shop, 3)
    assert planned.refused == {}
    assert steps(planned)["report"].seconds is not None


def test_damaged_reader_stops_it_with_a_reason(shop: Shop) -> None:
    chain(shop)
    shop.store.table.transact([Update(shop.store.keys("prices").head, set={"epoch": "one"})])
    assert "'epoch'" in plan(shop).refused["prices"]


def test_only_the_jobs_themselves_go_back_where_that_is_asked_for(shop: Shop) -> None:
    chain(shop)
    roots = {job: Change("rewind", to_run="3") for job in ("clean", "mail")}
    planned = plan_backfill(shop.store, roots, downstream=False)
    assert goes_to(planned) == {"clean": "3", "mail": "3"}
    assert planned.unaffected == ()


def test_upstream_that_went_back_before_takes_its_readers_along_now(shop: Shop) -> None:
    chain(shop)
    rewind(shop.store, "clean", 1, clean=True, **TERMS)
    shop.run("clean")  # run 5, in the second epoch
    planned = plan(shop, 5)
    assert steps(planned)["clean"].stands
    assert {job: to for job, to in goes_to(planned).items() if job != "clean"} == {
        "prices": "1", "report": "1", "mail": "1"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "roots", "how", "said"),
    [
        (JobUnknownError, {"no.such": Change("reset")}, {}, "no.such"),
        (RunUnknownError, {"clean": Change("rewind", to_run="99")}, {}, "99"),
        (OptionError, {"clean": Change("set", ctx="raw", value="now")}, {}, "by a reset or a rewind"),
        (OptionError, {"clean": Change("reset", contexts=("raw",))}, {}, "of some"),
        (OptionError, {"clean": Change("reset")}, {"leave": ["clean"]}, "is to be left out"),
        (OptionError, {"clean": Change("reset")}, {"leave": ["mial"]}, "'mial'"),
        (OptionError, {"clean": Change("reset")}, {"keep": ["nobody"]}, "is none of these jobs"),
    ],
)
def test_what_means_nothing_is_refused(
    shop: Shop, error: type[Exception], roots: dict[str, Change], how: dict[str, Any], said: str
) -> None:
    chain(shop, 1)
    with pytest.raises(error, match=said):
        plan_backfill(shop.store, roots, **how)
    assert shop.store.head("clean").epoch == 1


@pytest.mark.parametrize("reason", ["", "  "])
def test_reason_is_asked_for(shop: Shop, reason: str) -> None:
    chain(shop, 1)
    with pytest.raises(OptionError, match="reason"):
        carry_out(shop.store, plan(shop, None), reason=reason, who="ada")


def test_dags_to_trigger_come_once_in_order(shop: Shop) -> None:
    chain(shop, 1)
    for job, dag_id in (("clean", "shop"), ("report", "shop"), ("prices", "money")):
        shop.store.table.transact([Update(shop.store.keys(job).index, set={"dag_id": dag_id, "task_id": job})])
    told = plan(shop, None).as_dict()
    assert told["dag_runs"] == [
        {"dag_id": "shop", "jobs": ["clean", "report"]},
        {"dag_id": "money", "jobs": ["prices"]},
        {"dag_id": None, "jobs": ["mail"]},
    ]


def test_time_and_cost_are_those_of_the_runs_before(shop: Shop) -> None:
    chain(shop)
    for job in ("clean", "report", "prices", "mail"):
        for run in shop.store.runs(job):
            at = {"planned_at": "2026-01-01T00:00:00.000000Z", "published_at": "2026-01-01T00:01:00.000000Z"}
            shop.store.table.transact([Update(shop.store.keys(job).run(run.key), set=at)])
    told = plan(shop).as_dict(cost_per_hour=60.0)
    assert [step["seconds"] for step in told["steps"]] == [pytest.approx(120.0)] * 4  # two runs of a minute each
    assert told["seconds"] == pytest.approx(360.0)  # prices runs beside report
    assert told["cost"] == pytest.approx(8.0)


def test_overwriting_reader_goes_back_too(shop: Shop) -> None:
    chain(shop, 2)
    shop.mode = Mode.OVERWRITE
    shop.run("copy", upstream="report")
    shop.mode = Mode.APPEND
    reset(shop.store, "mail", **TERMS)
    planned = plan(shop, 1, clean=False)
    assert planned.refused == {}
    assert {"clean", "report"} <= set(goes_to(planned))


def test_expired_lease_is_no_holder(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(shop)
    shop.copy(shop.begin("report"), upstream="clean")
    now = shop.store.now()
    monkeypatch.setattr(BookmarkStore, "now", lambda self: now + LEASE_TIME + timedelta(seconds=1))
    assert plan(shop).refused == {}


# ---- what edges alone do not tell


def stopped_at(shop: Shop, job: str, monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
    """Let a backfill go back as far as the job before this one."""

    def failing(store: BookmarkStore, name: str, change: Change, **terms: Any) -> Any:
        if name == job:
            raise StoreUnavailableError("the table does not answer")
        return apply(store, name, change, **terms)

    with monkeypatch.context() as broken:
        broken.setattr("airflow_bookmarks.lifecycle.backfill.carry_out.apply", failing)
        with pytest.raises(BackfillStoppedError):
            made(shop, plan(shop, **how))


def all_run(shop: Shop, **of_mail: Any) -> None:
    """Correct the last row, and let each job run once, in order."""
    shop.put("3.txt", "row 3 corrected", seconds=1_700_000_900)
    shop.run("clean")
    for job in ("report", "prices"):
        shop.run(job, upstream="clean")
    shop.run("mail", upstream="report", **of_mail)


ONCE = {"row 0": 1, "row 1": 1, "row 2": 1, "row 3 corrected": 1}


def test_stop_below_the_first_readers_is_gone_on_with(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(shop)
    stopped_at(shop, "mail", monkeypatch)
    again = plan(shop)
    assert [step.job for step in again.steps if not step.stands] == ["mail"]
    assert steps(again)["mail"].because == {"report": 2}
    made(shop, again)
    all_run(shop, on_rewind="ignore")
    assert rows(shop, "clean", "report", "prices", "mail") == ONCE


def test_reader_of_a_job_that_went_back_by_itself_is_taken(shop: Shop) -> None:
    chain(shop)
    rewind(shop.store, "report", 2, clean=True, **TERMS)
    planned = plan(shop)
    assert goes_to(planned) == {"clean": "2", "prices": "2", "mail": "2"}
    made(shop, planned)
    all_run(shop, on_rewind="ignore")
    assert rows(shop, "clean", "report", "prices", "mail") == ONCE


def test_reader_that_has_deleted_its_own_input_is_cleaned_only_if_it_is_asked_for(shop: Shop) -> None:
    chain(shop)
    own = shop.root / "own"
    own.mkdir()
    (own / "a.txt").write_text("a")
    shop.put("last.txt", "last")
    shop.run("clean")
    run = shop.begin("report")
    run.dispose("own", Disposal("delete"))
    shop.copy(run, upstream="clean")
    run.plan("own", FileSource(FILES, [str(own)]))
    run.commit()
    assert not list(own.iterdir())

    assert "could not be made again" in (steps(plan(shop, clean=True))["report"].refused or "")

    assert steps(plan(shop, clean=True, keep=["report"]))["report"].refused is None
    assert steps(plan(shop, clean=False))["report"].refused is None
    asked = steps(plan(shop, 1, "report", clean=True))["report"]
    assert asked.refused is None
    assert any("could not be made again" in doubt for doubt in asked.doubts)


def test_clean_after_a_backfill_without_one_removes_what_readers_left(shop: Shop) -> None:
    chain(shop)
    made(shop, plan(shop, clean=False))
    planned = plan(shop, clean=True)
    assert {step.job for step in planned.steps if not step.stands} == {"clean", "report", "prices", "mail"}
    made(shop, planned)
    all_run(shop)
    assert rows(shop, "clean", "report", "prices", "mail") == ONCE


def test_reader_that_was_set_back_has_published_what_is_undone_all_the_same(shop: Shop) -> None:
    chain(shop)
    set_position(shop.store, "report", "raw", 2, **TERMS)
    planned = plan(shop)
    assert goes_to(planned) == {"clean": "2", "prices": "2", "report": "2", "mail": "2"}
    assert any("was set by hand" in doubt for doubt in steps(planned)["report"].doubts)
    made(shop, planned)
    all_run(shop)
    assert rows(shop, "clean", "report", "prices", "mail") == ONCE


def test_run_to_which_a_reader_goes_back_fits_all_its_upstreams_at_once(shop: Shop) -> None:
    def consume(job: str, **until: int) -> None:
        run = shop.begin(job)
        for upstream, number in until.items():
            run.plan(upstream, UpstreamSource(shop.store, job, upstream, until=number))
        run.commit()

    for name in "abcd":
        shop.put(f"{name}.txt", name)
        for upstream in ("one", "two"):
            shop.run(upstream)
    consume("both", one=3, two=1)
    set_position(shop.store, "both", "one", 1, **TERMS)
    consume("both", one=2, two=2)
    consume("both", one=4, two=4)
    planned = plan_backfill(shop.store, {"one": Change("rewind", to_run="2"), "two": Change("rewind", to_run="1")})
    assert steps(planned)["both"].change.kind == "reset"  # its first run has read run 3 of "one"


def test_reader_that_comes_between_look_and_change_refuses_it(shop: Shop) -> None:
    chain(shop)
    planned = plan(shop)
    shop.run("late", upstream="clean")
    with pytest.raises(ChangedMeanwhileError, match="'late'"):
        made(shop, planned)
    assert shop.store.head("clean").epoch == 1


def test_root_that_has_read_what_another_root_undoes_goes_back_far_enough(shop: Shop) -> None:
    for day in range(4):
        shop.put(f"{day}.txt", f"row {day}")
        shop.run("clean")
        if day % 2:
            shop.run("report", upstream="clean")
    roots = {job: Change("rewind", to_run="2") for job in ("clean", "report")}
    report = steps(plan_backfill(shop.store, roots))["report"]
    assert (report.change.to_run, report.because, report.stands) == ("1", {"clean": 2}, False)


def test_reader_of_a_replayed_run_goes_back_before_it(shop: Shop) -> None:
    chain(shop)
    run = ReplayRun.begin_replay(shop.store, "clean", shop.identity(), shop.environment, 2)
    shop.copy(run)
    run.commit()
    assert goes_to(plan(shop, 3)) == {"clean": "3", "prices": "1", "report": "1", "mail": "1"}


def test_context_that_had_another_name_then_is_refused_with_the_way(shop: Shop) -> None:
    chain(shop)
    rename_context(shop.store, "report", "raw", "cleaned", **TERMS)
    assert "rename-context report raw cleaned" in plan(shop).refused["report"]


def test_job_that_stands_there_hinders_nobody_though_its_next_run_holds_it(shop: Shop) -> None:
    chain(shop)
    rewind(shop.store, "clean", 2, clean=True, **TERMS)
    protect(shop.store, "clean", reason="money", who=Identity("ada", True, "airflow"))
    planned = plan(shop)
    assert (planned.refused, steps(planned)["clean"].stands) == ({}, True)


def test_output_that_is_kept_is_so_when_the_same_command_goes_on(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(shop)
    stopped_at(shop, "report", monkeypatch, keep=["prices"])
    assert plan(shop, keep=["prices"]).refused == {}


def test_dag_comes_after_those_whose_jobs_its_jobs_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("clean")
    shop.run("early", upstream="clean")
    shop.run("middle", upstream="clean")
    shop.run("late", upstream="middle")
    for job, dag_id in (("clean", "D1"), ("early", "D2"), ("late", "D2"), ("middle", "D3")):
        shop.store.table.transact([Update(shop.store.keys(job).index, set={"dag_id": dag_id, "task_id": job})])
    assert [dag_id for dag_id, _ in plan(shop, None).dag_runs] == ["D1", "D3", "D2"]


def test_reader_that_began_later_is_told_to_read_more(shop: Shop) -> None:
    chain(shop, 2)
    run = shop.begin("fresh", start=Start.of("now"))
    run.plan("raw", UpstreamSource(shop.store, "fresh", "clean"))
    run.commit()
    shop.put("2.txt", "row 2")
    shop.run("clean")
    shop.run("fresh", upstream="clean")
    fresh = steps(plan(shop, 1))["fresh"]
    assert fresh.change.kind == "reset"
    assert any("it began after run 2 of 'clean'" in doubt for doubt in fresh.doubts)


@pytest.mark.parametrize("roots", [{}, {"clean": Change("reset"), "cleaner": Change("rewind", to_run="1")}])
def test_roots_are_given_and_each_once(shop: Shop, roots: dict[str, Change]) -> None:
    chain(shop, 1)
    rename(shop.store, "clean", "cleaner", **TERMS)
    with pytest.raises(OptionError, match=r"at least one job|named already"):
        plan_backfill(shop.store, roots)


def test_one_name_is_no_list_of_names(shop: Shop) -> None:
    chain(shop, 1)
    with pytest.raises(OptionError, match="'mail' is one name"):
        plan(shop, None, leave="mail")
