"""The trigger form: what can be picked there, and that the operator takes it, for that run alone."""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from airflow.sdk import DAG, Param

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.operators.params import bookmark_arguments, bookmark_params
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from tests.airflow.compat import DagSerialization
from tests.airflow.conftest import Played, Player, World

# Takes the place of spark-submit: it notes the settings that it was called with, and commits nothing.
SPARK_SUBMIT = """#!{python}
import json, sys
conf = dict(a.split("=", 1) for i, a in enumerate(sys.argv) if sys.argv[i - 1] == "--conf")
with open({calls!r}, "a") as file:
    print(json.dumps({{k: v for k, v in conf.items() if k.startswith("spark.bookmarks.")}}), file=file)
"""


class Form:
    """A DAG whose trigger form has the bookmark, and what its job was submitted with."""

    def __init__(self, world: World, player: Player, patch: pytest.MonkeyPatch) -> None:
        self._calls = world.folder / "calls.jsonl"
        self._patch(world.folder / "bin", patch)
        player.play(self._dag())  # puts the DAG into the database

    def _dag(self) -> DAG:
        with DAG(
            "form", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), params=bookmark_params("pause")
        ) as dag:
            BookmarkSparkSubmitOperator(task_id="job", application="job.py", retries=1, **bookmark_arguments())
        return dag

    def _patch(self, programs: Path, patch: pytest.MonkeyPatch) -> None:
        programs.mkdir()
        program = programs / "spark-submit"
        program.write_text(SPARK_SUBMIT.format(python=sys.executable, calls=str(self._calls)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def trigger(self, **picked: Any) -> Played:
        """Trigger one run with what was picked in the form."""
        self._calls.unlink(missing_ok=True)
        # Made anew, as the file is read anew for each task: templates are rendered in place.
        return Played(self._dag().test(run_conf=picked))

    @property
    def calls(self) -> list[dict[str, str]]:
        """What was picked, as the jobs were submitted with it."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        names = ("option", "from", "to")
        calls = [json.loads(line) for line in lines]
        return [{n: c[f"spark.bookmarks.{n}"] for n in names if f"spark.bookmarks.{n}" in c} for c in calls]


@pytest.fixture
def form(world: World, player: Player, monkeypatch: pytest.MonkeyPatch) -> Form:
    return Form(world, player, monkeypatch)


def schema_of(param: Param) -> Any:
    """Return what the form is drawn from, as the API gives it."""
    return {**param.serialize()["schema"], "default": param.value}


# ---- the form


@pytest.mark.parametrize(
    ("name", "value", "is_valid"),
    [
        ("bookmark_option", "enable", True),
        ("bookmark_option", "pause", True),
        ("bookmark_option", "disable", True),
        ("bookmark_option", "paused", False),
        ("bookmark_option", None, False),
        ("bookmark_from", None, True),
        ("bookmark_from", "41", True),
        ("bookmark_from", "dag/manual__1/clean", True),
        ("bookmark_from", 41, False),
        ("bookmark_to", None, True),
        ("bookmark_to", ["41"], False),
    ],
)
def test_form_takes_what_has_a_meaning(name: str, value: Any, is_valid: bool) -> None:
    validator = jsonschema.Draft7Validator(schema_of(bookmark_params()[name]))

    assert validator.is_valid(value) is is_valid


def test_form_has_defaults_that_are_valid() -> None:
    for param in bookmark_params().values():
        jsonschema.validate(param.value, schema_of(param))


def test_form_survives_serialisation() -> None:
    with DAG("form", schedule=None, params=bookmark_params("disable")) as dag:
        pass

    read = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).params

    assert read.dump() == {"bookmark_option": "disable", "bookmark_from": None, "bookmark_to": None}
    assert read.get_param("bookmark_option").schema["enum"] == ["enable", "pause", "disable"]


@pytest.mark.parametrize(("given", "picked"), [("pause", "pause"), ("job-bookmark-disable", "disable")])
def test_glue_names_preset_the_form_too(given: str, picked: str) -> None:
    assert bookmark_params(given)["bookmark_option"].value == picked


def test_unknown_option_is_an_error_when_the_dag_file_is_read() -> None:
    with pytest.raises(OptionError, match="unknown bookmark option 'paused'"):
        bookmark_params("paused")


# ---- what the operator makes of it


def test_run_that_nobody_touched_takes_what_the_form_has(form: Form) -> None:
    assert form.trigger().state == "success"
    assert form.calls == [{"option": "pause"}]


@pytest.mark.parametrize(
    ("picked", "submitted"),
    [
        ({"bookmark_option": "disable"}, {"option": "disable"}),
        ({"bookmark_from": None, "bookmark_to": None}, {"option": "pause"}),
        ({"bookmark_from": "", "bookmark_to": " "}, {"option": "pause"}),
        ({"bookmark_from": "0", "bookmark_to": "3"}, {"option": "pause", "from": "0", "to": "3"}),
    ],
)
def test_choice_reaches_the_job(form: Form, picked: dict[str, Any], submitted: dict[str, str]) -> None:
    assert form.trigger(**picked).state == "success"
    assert form.calls == [submitted]


def test_choice_holds_for_that_run_alone(form: Form) -> None:
    form.trigger(bookmark_option="disable")

    form.trigger()

    assert form.calls == [{"option": "pause"}]


@pytest.mark.parametrize(
    "picked",
    [
        {"bookmark_from": "3"},
        {"bookmark_to": "3"},
        {"bookmark_option": "disable", "bookmark_from": "1", "bookmark_to": "3"},
    ],
)
def test_half_a_window_is_an_error_before_spark_and_is_not_tried_again(form: Form, picked: dict[str, str]) -> None:
    played = form.trigger(**picked)

    assert (played.state, played.tries("job")) == ("failed", 1)
    assert form.calls == []
