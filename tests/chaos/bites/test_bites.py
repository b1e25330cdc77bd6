"""A sample of the bites, those that are found fast: the simulator sees what it is there to see."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store
from tests.chaos.bites import data
from tests.chaos.bites.__main__ import hunt, is_of_the_bite
from tests.chaos.bites.bite import BITES, Bite, MisfitError, applied, put
from tests.chaos.sim import play
from tests.thorough import mostly_thorough

QUICK = [
    "plan_stored_after_read",
    "failed_not_settled",
    "writes_not_fenced",
    "commit_not_fenced",
    "discarded_instead_of_swept",
    "landed_rows_not_taken_over",
    "clean_not_finished",
    "half_landed_taken_for_whole",
    "missing_output_not_stored",
    "one_place_stored_with_its_write",
]


@pytest.mark.chaos
@pytest.mark.parametrize("name", mostly_thorough(QUICK, *QUICK[:4]))
def test_deliberate_fault_is_found(name: str) -> None:
    caught = hunt(BITES[name], seeds=600)
    assert caught.seed is not None, caught.bite.rule


@pytest.mark.parametrize(("file", "is_own"), [(data.__file__, True), (play.__file__, False)])
def test_error_in_the_code_of_a_bite_is_told_from_one_that_it_causes(file: str, is_own: bool) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        exec(compile("1 / 0", file, "exec"))  # noqa: S102 - an error that came up in that file

    assert is_of_the_bite(raised.value) is is_own


@pytest.mark.parametrize("name", BITES)
def test_bite_takes_the_calls_of_what_it_replaces(name: str) -> None:
    with applied(BITES[name]):
        pass


class Replaced:
    """What the tests below replace."""

    limit = 3

    def publish(self, run: str, *, held: bool = False) -> None:
        """Take what a caller gives."""

    @classmethod
    def begin(cls, run: str) -> None:
        """Take what a caller gives."""


@pytest.mark.parametrize(
    ("name", "patch"),
    [
        ("publish", lambda self: None),
        ("publish", lambda self, run: None),
        ("publish", lambda self, run, fence, *, held=False: None),
        ("publish", lambda self, key, *, held=False: None),
        ("publish", lambda self, run, *, held: None),
        ("publish", lambda *given: None),
        ("publish", True),
        ("begin", classmethod(lambda cls: None)),
        ("begin", lambda cls, run: None),
        ("limit", lambda self: 3),
        ("sweep", lambda self: None),
    ],
)
def test_bite_that_a_caller_could_not_call_is_broken_and_not_found(name: str, patch: object) -> None:
    before = dict(vars(Replaced))
    with (
        pytest.raises(MisfitError, match=f"Replaced.*{name}") as raised,
        applied(Bite("misfit", "a rule", lambda: put(Replaced, name, patch))),
    ):
        pass
    assert is_of_the_bite(raised.value)
    assert dict(vars(Replaced)) == before


@pytest.mark.parametrize(
    ("name", "patch"),
    [
        ("publish", lambda self, run, held=True: None),
        ("publish", lambda *given, **named: None),
        ("begin", classmethod(lambda cls, run, fence=0: None)),
        ("limit", 4),
    ],
)
def test_bite_that_fits_is_applied_for_the_time_of_the_block(name: str, patch: object) -> None:
    before = dict(vars(Replaced))
    with applied(Bite("fitting", "a rule", lambda: put(Replaced, name, patch))):
        assert vars(Replaced)[name] is patch
    assert dict(vars(Replaced)) == before


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_that_reads_from_the_beginning_begins_all_the_same(option: str) -> None:
    with applied(BITES["pause_from_the_beginning"]), memory_store() as store:
        driver = DriverStore(store, None, lambda entry: None)
        identity, choice = RunIdentity("execution", 1), Choice.of(option)
        run = DetachedRun.begin(driver, "copy", identity, choice, driver.environment)
    assert run.option.value == option
