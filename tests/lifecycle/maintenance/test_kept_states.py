"""State that an earlier version wrote is read, continued and changed by this one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.rules.condition import WatermarkReached
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.lifecycle.history.point import resolve_point
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.inspect.wait import Wait
from airflow_bookmarks.lifecycle.inspect.waiting import evaluate
from airflow_bookmarks.lifecycle.maintenance.doctor import advise
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.staging import Mode
from tests.lifecycle.kept_state import WHY, restore
from tests.lifecycle.shop import Shop, unsound

STATES = sorted((Path(__file__).parents[1] / "states").glob("*.json"))
JOBS = ["copy", "died", "overwriting", "report", "reset", "rewound", "set", "stateful"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a kept state lies below /proc/self/cwd")


@pytest.fixture(params=STATES, ids=[state.stem for state in STATES])
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.chdir(tmp_path)
    shop = restore(request.param, tmp_path / "state.db")
    yield shop
    shop.store.table.close()


def test_there_is_a_state_of_an_earlier_version() -> None:
    assert STATES


def test_doctor_finds_nothing_wrong(kept: Shop) -> None:
    found = {(finding.job, finding.code) for finding in unsound(kept.store)}
    assert found <= {("died", "lease-dangling")}  # its driver died, which is said once the lease has been over for long


def test_advice_reads_the_runs_of_every_job(kept: Shop) -> None:
    told = {each.job: each for each in advise(kept.store)}
    assert sorted(told) == JOBS
    assert {(job, each.unreadable, len(each.damaged_runs)) for job, each in told.items()} == {
        (job, None, 0) for job in JOBS
    }
    assert told["copy"].runs


@pytest.mark.parametrize("job", JOBS)
def test_history_and_pending_are_read(kept: Shop, job: str) -> None:
    assert sorted(name for name, _ in kept.store.jobs()) == JOBS
    assert history(kept.store, job) or job == "died"
    assert pending(kept.store, job).unknown is None or job == "died"


def test_job_goes_on_where_it_stood(kept: Shop) -> None:
    assert kept.run("copy")[0] == ["4a1"]
    assert kept.run("copy")[0] == []
    assert kept.target_lines("copy")["4a1"] == 1


def test_format_that_was_not_kept_then_is_no_other_source(kept: Shop) -> None:
    assert kept.run("stateful")[0] == []


def test_consumer_reads_what_came_since(kept: Shop) -> None:
    kept.run("copy")
    assert sorted(kept.run("report", upstream="copy")[0]) == ["2a1-corrected", "4a1"]


@pytest.mark.parametrize(
    ("job", "reached", "above", "refused"),
    [("copy", "2013-01-01T00:00:00Z", "2199-01-01T00:00:00Z", "42"), ("report", "1", "999", "2013-01-01T00:00:00Z")],
)
def test_watermark_of_then_is_waited_for_as_it_looks(
    kept: Shop, job: str, reached: str, above: str, refused: str
) -> None:
    assert [state.order for state in kept.store.head(job).contexts.values()] == [None]
    waits = [Wait((job,), WatermarkReached.of(text, None)) for text in (reached, above, refused)]

    low, high, other = evaluate(kept.store, waits)

    assert (low.is_met, high.is_met, high.error) == (True, False, None)
    assert "can't be compared" in str(other.error)
    with pytest.raises(OptionError, match="can't be compared"):
        resolve_point(kept.store, job, kept.store.head(job), f"watermark:{refused}")


def test_state_of_a_job_is_there(kept: Shop) -> None:
    run = kept.begin("stateful")
    assert run.state("cursor").get() == {"page": 7}
    run.abort("looked only")


def test_driver_that_died_is_given_up_and_its_input_read_again(kept: Shop) -> None:
    lines, summary = kept.run("died")
    assert sorted(lines) == sorted(kept.target_lines("died").elements())
    assert kept.staged_files("died") == []
    states = [run.state for run in kept.store.runs("died")]
    assert states == [RunState.ABANDONED, RunState.PUBLISHED]
    assert summary.run_number == 1


def test_reset_with_clean_is_finished_by_the_next_run(kept: Shop) -> None:
    assert kept.target_lines("reset")
    lines, _ = kept.run("reset")
    assert kept.target_lines("reset") == dict.fromkeys(lines, 1)


def test_history_can_be_changed(kept: Shop) -> None:
    rewind(kept.store, "copy", "2", clean=True, **WHY)
    assert sorted(kept.run("copy")[0]) == ["2a1-corrected", "3a1", "3a2", "4a1"]
    set_position(kept.store, "set", "raw", "2013-01-01T00:00:00Z", **WHY)
    assert kept.run("set")[0]
    reset(kept.store, "rewound", clean=True, **WHY)
    kept.run("rewound")
    assert set(kept.target_lines("rewound").values()) == {1}


def test_overwriting_job_replaces_what_it_wrote_then(kept: Shop) -> None:
    kept.put("day=5/a.csv", "5a1")
    kept.mode = Mode.OVERWRITE
    kept.run("overwriting")
    assert kept.target_lines("overwriting") == {"5a1": 1}


def test_finished_run_is_made_again(kept: Shop) -> None:
    before = kept.target_lines("stateful")
    run = ReplayRun.begin_replay(kept.store, "stateful", kept.identity(), kept.environment, 1)
    lines = kept.copy(run)
    run.commit()
    assert kept.target_lines("stateful") == before == Counter(lines)
