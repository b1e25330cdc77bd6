"""The command line: both doors, what they print, and how they end."""

from __future__ import annotations

import argparse
import getpass
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# First of all: it says where Airflow's home is, before anything imports Airflow.
import tests.airflow.conftest  # noqa: F401

# isort: split
import pytest

from airflow_bookmarks.cli import airflow_commands, main
from airflow_bookmarks.cli.command import STORE_VARIABLE, VERBS
from airflow_bookmarks.cli.output.values import as_list
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.airflow.compat import needs_provider_commands
from tests.lifecycle.shop import Shop

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    for name in ("a.txt", "b.txt", "c.txt"):
        shop.put(name, name, seconds=1_700_000_000 + ord(name[0]))
        shop.run("flights_clean.clean")
    return shop


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run a verb that succeeds; return what it printed as JSON."""
    capsys.readouterr()  # Airflow 3.0 logs to standard output what a run of the test has said
    assert main([*arguments, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


class Terminal(io.StringIO):
    """Somebody at a terminal, who types this."""

    def isatty(self) -> bool:
        return True


# ---- looking


def test_history_is_a_list_of_runs_oldest_first(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", uri, "history", "flights_clean.clean", "--output", "json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert [(row["number"], row["epoch"], row["state"], row["files"]) for row in rows] == [
        (1, 1, "PUBLISHED", 1),
        (2, 1, "PUBLISHED", 1),
        (3, 1, "PUBLISHED", 1),
    ]
    assert {"run_id", "rows", "watermark"} <= set(rows[0])


@pytest.mark.parametrize("is_before", [True, False])
def test_options_for_all_verbs_go_before_the_verb_and_after_it(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], is_before: bool
) -> None:
    options = ["--store", uri, "--output", "json"]

    assert main([*options, "list"] if is_before else ["list", *options]) == 0

    assert [row["job"] for row in json.loads(capsys.readouterr().out)] == ["flights_clean.clean"]


def test_store_comes_from_the_environment_where_none_is_given(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STORE_VARIABLE, uri)

    assert answer(capsys, "show", "flights_clean.clean")["run_number"] == 3


def test_limit_takes_the_newest_runs(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "--store", uri, "history", "flights_clean.clean", "--limit", "2")

    assert [row["number"] for row in rows] == [2, 3]


def test_all_shows_runs_that_did_not_commit(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = shop.begin("flights_clean.clean")
    shop.copy(run)
    run.abort("out of memory")

    assert len(answer(capsys, "--store", uri, "history", "flights_clean.clean")) == 3
    rows = answer(capsys, "--store", uri, "history", "flights_clean.clean", "--all")
    assert [(row["number"], row["state"]) for row in rows][-1] == (4, "FAILED")


def test_table_has_aligned_columns(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", uri, "history", "flights_clean.clean"]) == 0

    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:4] == ["NUMBER", "EPOCH", "STATE", "REVISION"]
    assert len(lines) == 3
    assert all(line[heading.index("STATE") :].startswith("PUBLISHED") for line in lines)


@pytest.mark.parametrize("verb", [["list"], ["show", "flights_clean.clean"], ["check"]])
def test_every_look_has_a_form_for_people(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    assert main(["--store", uri, *verb]) == 0
    assert capsys.readouterr().out.strip()


def test_init_makes_the_store_and_check_says_that_it_is_one(
    uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", uri, "check"]) == 1
    assert "bookmarks.db" in capsys.readouterr().err
    assert not (tmp_path / "bookmarks.db").exists()

    assert answer(capsys, "--store", uri, "init")["created"] is True
    assert answer(capsys, "--store", uri, "init")["created"] is False
    assert answer(capsys, "--store", uri, "check")["usable"] is True


# ---- changing


def test_rewind_of_a_context_names_the_run_that_was_asked_for_and_which_targets_may_hold_rows_twice(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["rewind", "flights_clean.clean", "--to", "1", "--ctx", "raw", "--reason", "a test", "--dry-run"]
    assert main(["--store", uri, *arguments]) == 0
    printed = capsys.readouterr().out
    assert "goes back to run 1 with raw alone: no run is undone" in printed
    assert f"may hold rows twice, if it is made from raw: {shop.root}/flights_clean.clean" in printed
    assert "would hold rows twice" not in printed


def test_rewind_says_what_it_undoes_and_keeps_who_and_why(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--store", uri, "rewind", "flights_clean.clean", "--to", "1", "--reason", "wrong rows", "--yes"]

    assert main([*command, "--output", "json"]) == 0

    printed = capsys.readouterr()
    assert "goes back to run 1: 2 runs are undone (2, 3)" in printed.err
    assert "watermark 2023-11-14T22:14:59" in printed.err
    assert json.loads(printed.out)["undone_run_count"] == 2
    (event,) = shop.store.events("flights_clean.clean")
    assert (event["kind"], event["who"], event["why"]) == ("rewind", getpass.getuser(), "wrong rows")


@pytest.mark.parametrize(("typed", "code", "epoch"), [("y\n", 0, 2), ("yes\n", 0, 2), ("\n", 1, 1), ("n\n", 1, 1)])
def test_reset_asks_at_a_terminal(
    shop: Shop, uri: str, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, epoch: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))

    assert main(["--store", uri, "reset", "flights_clean.clean", "--reason", "all over"]) == code

    assert shop.store.head("flights_clean.clean").epoch == epoch


def test_reset_without_a_terminal_needs_yes(
    shop: Shop, uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    assert main(["--store", uri, "reset", "flights_clean.clean", "--reason", "all over"]) == 1

    assert "Give --yes" in capsys.readouterr().err
    assert shop.store.head("flights_clean.clean").epoch == 1


def test_run_that_commits_while_somebody_thinks_is_not_undone_unseen(
    shop: Shop, uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow(Terminal):
        def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
            shop.run("flights_clean.clean")
            return "y\n"

    monkeypatch.setattr(sys, "stdin", Slow())

    assert main(["--store", uri, "reset", "flights_clean.clean", "--reason", "all over"]) == 1

    assert "Look again" in capsys.readouterr().err
    assert shop.store.head("flights_clean.clean").epoch == 1


def test_job_that_a_run_holds_is_changed_only_by_force(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.begin("flights_clean.clean", run_id="somebody/else")
    command = ["--store", uri, "reset", "flights_clean.clean", "--reason", "now", "--yes"]

    assert main(command) == 1
    assert "somebody/else" in capsys.readouterr().err

    assert main([*command, "--force"]) == 0


# ---- how it ends


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["list"],
        ["--store", "x", "no-such-verb"],
        ["--store", "x", "history"],
        ["--store", "x", "history", "j", "--limit", "0"],
        ["--store", "x", "history", "j", "--lim", "1"],
        ["--store", "x", "reset", "j", "--yes"],
        ["--store", "x", "rewind", "j", "--reason", "r"],
        ["--store", "x", "list", "--output", "yaml"],
    ],
)
def test_wrong_usage_ends_with_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(STORE_VARIABLE, raising=False)

    assert main(arguments) == 2
    assert "usage: airflow-bookmarks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "no.such"], "no bookmark named 'no.such'"),
        (["history", "no.such"], "no bookmark named 'no.such'"),
        (["rewind", "flights_clean.clean", "--to", "9", "--reason", "r", "--yes"], "no committed run '9'"),
        (["reset", "flights_clean.clean", "--reason", " ", "--yes"], "needs a reason"),
        (["show", "a/b"], "can't be the name of a job"),
    ],
)
def test_refusal_ends_with_1_and_the_reason_alone(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["--store", uri, *arguments]) == 1

    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_help_ends_with_0_and_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "1 refused or failed" in capsys.readouterr().out


def test_own_door_works_without_airflow(shop: Shop, uri: str) -> None:
    script = (
        "import sys\n"
        "sys.modules['airflow'] = None\n"  # an import of it fails
        "from airflow_bookmarks.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", script, "--store", uri, "history", "flights_clean.clean", "--output", "json"]

    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)

    assert len(json.loads(done.stdout)) == 3


# ---- the door in Airflow


def airflow_door(
    store: BookmarkStore, *arguments: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a verb by the commands that Airflow is given, in a process of its own."""
    script = (
        "import argparse, sys\n"
        "from airflow_bookmarks.cli import airflow_commands\n"
        "(group,) = airflow_commands()\n"
        "action = next(a for a in group.subcommands if a.name == sys.argv[1])\n"
        "parser = argparse.ArgumentParser()\n"
        "[arg.add_to_parser(parser) for arg in action.args]\n"
        "action.func(parser.parse_args(sys.argv[2:]))\n"
    )
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=PROJECT, env={**os.environ, **environment}
    )


def airflow_group() -> Any:
    (group,) = airflow_commands()
    return group


def test_airflow_has_the_same_verbs() -> None:
    group = airflow_group()

    assert group.name == "bookmarks"
    assert [command.name for command in group.subcommands] == [verb.name for verb in VERBS]


@pytest.mark.seldom
@needs_provider_commands
def test_airflow_door_takes_a_connection(shop: Shop, uri: str, tmp_path: Path) -> None:
    connection = json.dumps({"conn_type": "bookmarks", "extra": {"store": uri}})
    environment = {"AIRFLOW_HOME": str(tmp_path / "home"), "AIRFLOW_CONN_MINE": connection}
    verb = ("history", "flights_clean.clean", "--output", "json")

    done = airflow_door(shop.store, *verb, "--conn-id", "mine", environment=environment)

    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 3


@pytest.mark.seldom
def test_airflow_door_ends_as_the_other_one(shop: Shop, uri: str, tmp_path: Path) -> None:
    environment = {"AIRFLOW_HOME": str(tmp_path / "home")}

    refused = airflow_door(shop.store, "show", "no.such", "--store", uri, environment=environment)
    both = airflow_door(shop.store, "list", "--store", uri, "--conn-id", "mine", environment=environment)

    assert (refused.returncode, "no bookmark named 'no.such'" in refused.stderr) == (1, True)
    assert (both.returncode, "Give one" in both.stderr) == (1, True)
    assert "Traceback" not in refused.stderr + both.stderr


def test_reader_that_goes_away_is_no_error_of_either_door(
    shop: Shop, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `head`, which has seen enough."""
    action = next(command for command in airflow_group().subcommands if command.name == "list")
    args = argparse.Namespace(store=uri, conn_id=None, output="table", shards=False)
    for door in (lambda: main(["list", "--store", uri]), lambda: action.func(args)):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as stdout:
            monkeypatch.setattr(sys, "stdout", stdout)
            assert not door()
        monkeypatch.undo()


@pytest.mark.seldom
def test_message_names_the_command_that_was_used_with_its_store(
    shop: Shop, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = ("files", "flights_clean.clean", "--run", "99")
    assert main(["--store", uri, *unknown]) == 1
    assert f"'airflow-bookmarks history --store {uri} flights_clean.clean'" in capsys.readouterr().err
    monkeypatch.setenv(STORE_VARIABLE, uri)
    assert main([*unknown]) == 1
    assert "'airflow-bookmarks history flights_clean.clean'" in capsys.readouterr().err

    environment = {"AIRFLOW_HOME": str(tmp_path / "home")}
    done = airflow_door(shop.store, *unknown, "--store", uri, environment=environment)
    assert done.returncode == 1
    assert "airflow bookmarks: " in done.stderr
    assert f"'airflow bookmarks history --store {uri} flights_clean.clean'" in done.stderr


def test_message_that_names_the_store_itself_names_it_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = f"sqlite:///{tmp_path}/absent.db"
    assert main(["--store", absent, "list"]) == 1
    assert f"'airflow-bookmarks init --store {absent}'" in capsys.readouterr().err
    monkeypatch.setenv(STORE_VARIABLE, absent)
    assert main(["list"]) == 1
    assert f"'airflow-bookmarks init --store {absent}'" in capsys.readouterr().err


def test_verbs_take_the_same_arguments_at_both_doors() -> None:
    for command, verb in zip(airflow_group().subcommands, VERBS, strict=True):
        parser = argparse.ArgumentParser()
        for argument in command.args:
            argument.add_to_parser(parser)
        flags = {flag for action in parser._actions for flag in action.option_strings or [action.dest]}
        assert {flag for argument in verb.arguments for flag in argument.flags} <= flags


def test_list_shows_each_of_several_things_on_a_line_of_its_own() -> None:
    text = as_list({"job": "a", "changes": [{"kind": "rewind", "who": "ada"}], "none": []})
    assert text.splitlines() == ["job      a", "changes", "  kind=rewind who=ada", "none     -"]
