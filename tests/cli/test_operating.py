"""Verbs with which a person operates jobs: changes with their preview, files of a run, doctor and gc."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import PartlyLandedError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import open_store
from airflow_bookmarks.store.table import Delete
from tests.lifecycle.rows import RowTables
from tests.lifecycle.shop import FILES, Shop

JOB = "copy"
WHY = ("--reason", "a test", "--yes")


@pytest.fixture
def shop(tmp_path: Path, uri: str) -> Shop:
    """Open a shop with three runs of one file each."""
    store = open_store(uri)
    store.init()
    shop = Shop(tmp_path, store)
    for second, name in enumerate("abc", 1):
        shop.put(f"{name}.txt", name, seconds=1_700_000_000 + second)
        shop.run(JOB)
    return shop


def call(uri: str, *words: str, code: int = 0) -> None:
    assert main(["--store", uri, *words]) == code


def answer(uri: str, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    call(uri, *words, "--output", "json", code=code)
    return json.loads(capsys.readouterr().out)


def test_preview_is_shown_before_a_change(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("report", upstream=JOB)
    call(uri, "rewind", JOB, "--to", "1", "--clean", *WHY)

    said = capsys.readouterr().err
    assert "2 runs are undone (2, 3)" in said
    assert "read again: 2 files, 4 bytes, " not in said  # rows of a run without counts are not made up
    assert "read again: 2 files, 4 bytes" in said
    assert "removed by the next run: 2 published files" in said
    assert "consumer report has read up to run 3" in said


def test_rewind_takes_a_time_or_a_watermark(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = answer(uri, capsys, "rewind", JOB, "--to", "watermark:2023-11-14T22:13:22Z", *WHY)
    assert done["to_run"] == 2
    committed = shop.store.committed_run(JOB, 1)
    assert committed is not None
    assert committed.committed_at is not None
    done = answer(uri, capsys, "rewind", JOB, "--to", committed.committed_at, *WHY)
    assert done["to_run"] == 1
    call(uri, "rewind", JOB, "--to", "2013-01-01T00:00:00Z", *WHY, code=1)
    assert "no living run" in capsys.readouterr().err
    call(uri, "rewind", JOB, "--to", "2013-01-01", *WHY, code=1)
    assert "without a zone" in capsys.readouterr().err


def test_single_context_is_reset(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = answer(uri, capsys, "reset", JOB, "--ctx", "raw", *WHY)
    assert done["undone_run_count"] == 0
    assert shop.store.head(JOB).contexts == {}
    call(uri, "reset", JOB, "--ctx", "rwa", *WHY, code=1)
    assert "has no context 'rwa'" in capsys.readouterr().err


def test_set_and_undo(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put("d.txt", "d")
    call(uri, "set", JOB, "raw", "now", *WHY)
    call(uri, "undo", JOB, *WHY)
    assert shop.run(JOB)[0] == ["d"]
    call(uri, "set", JOB, "raw", "soon", *WHY, code=1)
    assert "neither 'now' nor a time" in capsys.readouterr().err


def test_state_is_shown_set_and_hidden(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "set-state", JOB, "cursor", '"2013-01-31"', *WHY)
    said = capsys.readouterr().err
    assert "gets another value of job.state 'cursor': no run is undone" in said
    assert 'job.state cursor: - -> "2013-01-31"' in said
    assert "watermark" not in said  # of contexts that stay where they are
    assert answer(uri, capsys, "show", JOB)["state"] == {"cursor": '"2013-01-31"'}
    assert answer(uri, capsys, "show", JOB, "--hide-state")["state"] == {"cursor": "(hidden)"}
    call(uri, "set-state", JOB, "cursor", "7", "--hide-state", *WHY)
    told = capsys.readouterr()
    assert "job.state cursor: (hidden) -> (hidden)" in told.err
    assert "2013" not in told.err + told.out
    call(uri, "undo", JOB, *WHY)
    assert 'job.state cursor: 7 -> "2013-01-31"' in capsys.readouterr().err
    call(uri, "set-state", JOB, "cursor", "2013-01-31", *WHY, code=1)
    assert "is no JSON" in capsys.readouterr().err


def test_context_is_renamed(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "rename-context", JOB, "raw", "flights", *WHY)
    assert "under the name 'flights': no run is undone" in capsys.readouterr().err
    assert list(answer(uri, capsys, "show", JOB)["contexts"]) == ["flights"]


def test_moved_folder_is_relocated_after_its_counts_were_shown(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = shop.root / "moved"
    shop.raw.rename(moved)
    call(uri, "relocate", JOB, "raw", "--from", str(shop.raw), "--to", str(moved), *WHY)
    assert "3 files count as read, 0 changed and 0 new are to be read" in capsys.readouterr().err
    assert shop.store.head(JOB).contexts["raw"].fingerprint == f"files:{moved}"
    call(uri, "relocate", JOB, "raw", "--from", str(shop.raw), "--to", str(moved), *WHY, code=1)
    assert "reads no folder" in capsys.readouterr().err


def test_unlock_frees_the_job(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.begin(JOB, run_id="dead")
    assert answer(uri, capsys, "unlock", JOB, "--reason", "it is dead")["held_by"] == "dead"
    call(uri, "unlock", JOB, "--reason", "again", code=1)
    assert "nobody holds it" in capsys.readouterr().err


def test_run_in_one_table_of_two_is_settled_after_it_was_shown(
    shop: Shop, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = RowTables(tmp_path)
    shop.put("d.txt", "d")
    dead = shop.begin(JOB, run_id="dead", sinks=SINKS.extended(tables))
    dead.plan("raw", FileSource(FILES, [str(shop.raw)]))
    dead.place_landings({name: StagingRequest(RowTables.kind, f"row-tables://{name}") for name in ("day", "region")})
    tables.table("day").write(int(dead.token.rsplit("/", 1)[1]), ["d"])
    settle = ("settle", JOB, "--run", "4", "--as", "committed")
    call(uri, *settle, *WHY, code=1)
    assert "no run is known to be" in capsys.readouterr().err
    with pytest.raises(PartlyLandedError):
        shop.begin(JOB, run_id="dead", attempt=2, sinks=SINKS.extended(tables))

    assert answer(uri, capsys, *settle, *WHY)["settled_as"] == "committed"
    call(uri, *settle, *WHY)
    told = capsys.readouterr().err
    assert "run 4 has landed in: output 'day' (row-tables://day)" in told
    assert "and not in: output 'region' (row-tables://region)" in told
    assert "the position moves over its input" in told
    call(uri, *settle[:3], "3", *settle[4:], *WHY, code=1)
    assert "; run 4 is." in capsys.readouterr().err


def test_replay_says_what_to_submit(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(uri, capsys, "replay", JOB, "--run", "2")
    assert told["conf"] == {"spark.bookmarks.job": JOB, "spark.bookmarks.replay": "2"}
    call(uri, "replay", JOB, "--run", "9", code=1)


def test_files_of_a_run_are_listed(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(uri, capsys, "files", JOB, "--run", "2")
    assert [(row["ctx"], Path(row["path"]).name, row["bytes"]) for row in rows] == [("raw", "b.txt", 2)]


def test_set_that_skips_data_says_what_is_never_read(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put("unread.txt", "never")
    call(uri, "set", JOB, "raw", "now", *WHY)
    told = capsys.readouterr().err.splitlines()[1]  # before all else that it would do
    assert "WARNING: NEVER READ: 1 file, 6 bytes that context 'raw' has not read yet count as read" in told
    assert "LOST to this job" in told


def test_doctor_finds_nothing_in_a_healthy_state(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "doctor")
    assert capsys.readouterr().out == "clean: nothing found\n"
    assert answer(uri, capsys, "doctor", JOB) == []


def test_doctor_looks_for_jobs_that_the_list_has_lost_where_it_is_asked_to(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.store.table.transact([Delete(shop.store.keys(JOB).index)])
    call(uri, "doctor")
    capsys.readouterr()
    assert [found["code"] for found in answer(uri, capsys, "doctor", "--lost", code=1)] == ["index-missing"]
    call(uri, "doctor", JOB, "--lost", code=1)
    assert "leave the names out" in capsys.readouterr().err


def test_doctor_names_damage_and_repairs_what_is_safe(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.store.table.transact([Delete(shop.store.keys(JOB).index)])
    found = answer(uri, capsys, "doctor", JOB, code=1)
    assert [finding["code"] for finding in found] == ["index-missing"]
    call(uri, "doctor", JOB, "--repair")
    call(uri, "doctor")


def test_gc_says_what_it_would_remove(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(uri, capsys, "gc", "--dry-run", "--retention-days", "30")
    assert (told["is_dry_run"], told["runs"]) == (True, 0)
    call(uri, "gc", "--retention-days", "0", code=2)


def test_files_of_one_context_are_listed(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(answer(uri, capsys, "files", JOB, "--run", "2", "--ctx", "raw")) == 1
    call(uri, "files", JOB, "--run", "2", "--ctx", "rwa", code=1)
    assert "read no context 'rwa'" in capsys.readouterr().err


def test_run_that_a_watermark_means_is_shown_before_the_change(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "rewind", JOB, "--to", "watermark:2023-11-14T22:13:22Z", *WHY)
    assert "'watermark:2023-11-14T22:13:22Z' is run 2" in capsys.readouterr().err


def test_dry_run_says_what_it_would_do_and_does_nothing(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shop.store.head(JOB)
    told = answer(uri, capsys, "rewind", JOB, "--to", "1", "--reason", "a test", "--dry-run")
    assert (told["undone_runs"], told["undone_run_count"], told["version"]) == ([2, 3], 2, before.version)
    assert shop.store.head(JOB) == before


def test_dry_run_prints_the_sentences_of_the_change_itself(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rewind = ["--store", uri, "rewind", JOB, "--to", "1", "--reason", "a test"]
    assert main([*rewind, "--dry-run"]) == 0
    preview = capsys.readouterr().out
    assert "goes back to run 1: 2 runs are undone (2, 3). Written data stays." in preview

    assert main([*rewind, "--yes", "--output", "json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(preview)
    assert json.loads(printed.out)["undone_run_count"] == 2


# ---- protection


def test_protected_job_is_not_changed_without_a_request(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "protect", JOB, "--reason", "money")
    for verb in (["reset", JOB], ["rewind", JOB, "--to", "1"], ["set", JOB, "raw", "now"], ["undo", JOB]):
        call(uri, *verb, *WHY, code=1)
        assert "--request" in capsys.readouterr().err
    call(uri, "delete", JOB, "--name", JOB, *WHY, code=1)
    assert shop.store.head(JOB).epoch == 1


def test_force_belongs_to_the_approval_and_not_to_the_request(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "protect", JOB, "--reason", "money")
    call(uri, "reset", JOB, "--reason", "wrong rows", "--request", "--force", code=1)
    assert "Nothing was asked for" in capsys.readouterr().err
    assert answer(uri, capsys, "requests", JOB) == []


def test_preview_counts_one_of_a_thing_as_one(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "rewind", JOB, "--to", "2", *WHY)
    said = capsys.readouterr().err
    assert "1 run is undone (3)" in said
    assert "read again: 1 file, " in said


def test_request_is_shown_and_not_approved_by_who_asked(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "protect", JOB, "--reason", "money")
    capsys.readouterr()
    asked = answer(uri, capsys, "rewind", JOB, "--to", "1", "--reason", "wrong rows", "--request")
    assert asked["preview"]["undone_runs"] == [2, 3]
    assert [row["id"] for row in answer(uri, capsys, "requests", JOB)] == [asked["id"]]

    call(uri, "approve", JOB, asked["id"], "--yes", code=1)

    said = capsys.readouterr().err
    assert "2 runs are undone (2, 3)" in said
    assert "another person has to approve" in said


def test_request_that_is_rejected_is_listed_with_all_only(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "protect", JOB, "--reason", "money")
    call(uri, "unprotect", JOB, "--reason", "it is over")
    capsys.readouterr()
    (asked,) = answer(uri, capsys, "requests", JOB)
    assert answer(uri, capsys, "reject", JOB, asked["id"], "--reason", "no")["state"] == "rejected"
    assert answer(uri, capsys, "requests", JOB) == []
    assert [row["state"] for row in answer(uri, capsys, "requests", JOB, "--all")] == ["rejected"]
    assert shop.store.head(JOB).protected


# ---- names


def test_renamed_job_is_found_by_both_names(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "rename", JOB, "lake.copy", "--reason", "a test", code=1)
    assert "Give --yes." in capsys.readouterr().err
    call(uri, "rename", JOB, "lake.copy", *WHY)
    assert "gets the name 'lake.copy', and keeps those that it has" in capsys.readouterr().err
    capsys.readouterr()
    for verb in (["show"], ["history"], ["files", "--run", "1"], ["diff", "1", "2"], ["requests"]):
        name, *rest = verb
        assert answer(uri, capsys, name, "lake.copy", *rest) == answer(uri, capsys, name, JOB, *rest)
    assert answer(uri, capsys, "show", JOB)["names"] == [JOB, "lake.copy"]
    assert [(row["job"], row["other_names"]) for row in answer(uri, capsys, "list")] == [(JOB, ["lake.copy"])]
    assert answer(uri, capsys, "rewind", "lake.copy", "--to", "1", *WHY)["to_run"] == 1


def test_renamed_dag_adopts_its_bookmark(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(uri, capsys, "adopt", "new.copy", "--from", JOB, "--reason", "a test")["job"] == JOB
    assert answer(uri, capsys, "show", "new.copy")["run_number"] == 3


def test_job_is_deleted_by_its_name_typed_out(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "delete", JOB, *WHY, code=1)
    assert "Give --name" in capsys.readouterr().err
    call(uri, "delete", JOB, "--name", "cpoy", *WHY, code=1)
    call(uri, "delete", JOB, "--name", JOB, *WHY)
    capsys.readouterr()
    assert answer(uri, capsys, "list") == []


# ---- transfer


def test_export_of_one_store_is_imported_by_another(
    shop: Shop, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = str(tmp_path / "all.json"), f"sqlite:///{tmp_path}/other.db"
    call(uri, "export", "--file", file)
    call(other, "init")
    capsys.readouterr()

    assert answer(other, capsys, "import", file, "--reason", "a move")["jobs"] == {JOB: 3}

    assert answer(other, capsys, "history", JOB) == answer(uri, capsys, "history", JOB)
    assert answer(uri, capsys, "diff", JOB, "--with-store", other)["is_same"] is True
    assert answer(other, capsys, "import", file, "--reason", "again")["kept"] == [JOB]
    shop.run(JOB)
    call(uri, "export", "--file", file)
    call(other, "import", file, "--reason", "again", code=1)
    call(other, "import", file, "--reason", "again", "--overwrite")


def test_export_without_a_file_prints_the_document(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "export", JOB)
    assert list(json.loads(capsys.readouterr().out)["jobs"]) == [JOB]
    call(uri, "export", "--glue")
    assert [entry["Run"] for entry in json.loads(capsys.readouterr().out)] == [4]


def test_file_that_can_not_be_read_or_written_is_told(
    shop: Shop, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "export", "--file", str(tmp_path / "no" / "where.json"), code=1)
    call(uri, "import", str(tmp_path / "absent.json"), "--reason", "r", code=1)
    (tmp_path / "half.json").write_text('{"format": 1')
    call(uri, "import", str(tmp_path / "half.json"), "--reason", "r", code=1)
    said = capsys.readouterr().err
    assert said.count("can't be") == 3
    assert "Traceback" not in said


# ---- differences


@pytest.mark.parametrize("arguments", [["1"], ["1", "2", "3"], [], ["1", "2", "--with-store", "sqlite:///:memory:"]])
def test_diff_takes_two_runs_or_another_store(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    call(uri, "diff", JOB, *arguments, code=1)
    assert "diff takes two runs" in capsys.readouterr().err


def test_long_difference_is_cut_for_people_only(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(30):
        shop.put(f"x{number}.txt", "x")
    shop.run(JOB)
    call(uri, "diff", JOB, "1", "4")
    assert "... and 10 more" in capsys.readouterr().out
    assert len(answer(uri, capsys, "diff", JOB, "1", "4")["contexts"]["raw"]["only_in_b"]) == 30


# ---- odd surroundings


@pytest.mark.parametrize(
    "words", [("gc", "--retention-days", "9999999999"), ("rewind", JOB, "--to", "watermark:--5", *WHY)]
)
def test_number_that_means_nothing_is_refused_in_words(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    call(uri, *words, code=2 if words[0] == "gc" else 1)
    assert "Traceback" not in capsys.readouterr().err


def test_watermark_of_five_thousand_digits_is_refused_in_words(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(uri, "rewind", JOB, "--to", "watermark:" + "9" * 5000, *WHY, code=1)
    said = capsys.readouterr().err
    assert "can't be compared" in said
    assert len(said) < 500


def door(uri: str, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Call the command in a process of its own."""
    command = [sys.executable, "-c", "import sys; from airflow_bookmarks.cli import main; sys.exit(main())"]
    known = {**os.environ, **environment}
    return subprocess.run([*command, "--store", uri, *words], capture_output=True, env=known, check=False)


@pytest.mark.seldom
def test_letters_that_stdout_lacks_are_escaped_and_the_change_is_done(shop: Shop, uri: str) -> None:
    done = door(uri, "reset", JOB, "--reason", "Grüße ☕", "--yes", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
    shown = door(uri, "show", JOB, "--output", "json", PYTHONIOENCODING="ascii")
    assert json.loads(shown.stdout)["changes"][0]["why"] == "Grüße ☕"
    assert b"Gr\\xfc\\xdfe" in door(uri, "show", JOB, PYTHONIOENCODING="ascii").stdout


def test_stdout_that_takes_no_more_is_an_error_in_words(shop: Shop, uri: str) -> None:
    command = [sys.executable, "-c", "import sys; from airflow_bookmarks.cli import main; sys.exit(main())"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*command, "--store", uri, "list"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"airflow-bookmarks: the result can't be written")
    assert b"Traceback" not in done.stderr


def test_store_whose_name_is_not_utf8_is_refused_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    call("sqlite:////tmp/\udcff.db", "list", code=1)
    assert "can't be read" in capsys.readouterr().err


def test_interrupted_command_says_so(shop: Shop, uri: str, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airflow_bookmarks.lifecycle.inspect.status.bookmarks", interrupted)
    call(uri, "list", code=130)
    assert capfd.readouterr().err.startswith("airflow-bookmarks: interrupted")


def test_repair_shows_what_it_could_not_mend(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    shop.store.table.transact([Delete(shop.store.keys(JOB).run(RunKey(2, 2)))])
    call(uri, "doctor", "--repair", code=1)
    assert "run 2" in capsys.readouterr().out
    assert answer(uri, capsys, "doctor", "--repair", code=1)["left"]


# ---- owners


def test_job_is_shared_and_handed_over(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "hand-over", JOB, "--to", "finance", "--reason", "a test", code=1)
    assert "Give --yes." in capsys.readouterr().err
    call(uri, "hand-over", JOB, "--to", "finance", *WHY)
    assert "belongs to DAG 'finance' from now on" in capsys.readouterr().err

    shared = answer(uri, capsys, "share", JOB, "--with", "sales", *WHY)
    given = answer(uri, capsys, "hand-over", JOB, "--to", "accounts", "--renamed", *WHY)
    told = answer(uri, capsys, "show", JOB)

    assert (shared["owner"], shared["shared_with"], given["owner"]) == ("finance", ["sales"], "accounts")
    assert (told["dag_id"], told["former_owners"], told["shared_with"]) == ("accounts", [], ["sales"])
    assert answer(uri, capsys, "unshare", JOB, "--with", "sales", "--reason", "a test")["shared_with"] == []
    assert [(each["kind"], each["dag"]) for each in answer(uri, capsys, "show", JOB)["changes"]][-2:] == [
        ("hand-over", "accounts"),
        ("unshare", "sales"),
    ]


def test_protected_job_is_handed_over_by_a_request(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(uri, "protect", JOB, "--reason", "money")
    call(uri, "hand-over", JOB, "--to", "finance", *WHY, code=1)
    assert "--request" in capsys.readouterr().err
    asked = answer(uri, capsys, "hand-over", JOB, "--to", "finance", *WHY, "--request")
    assert (asked["change"]["kind"], asked["change"]["dag"], asked["state"]) == ("hand-over", "finance", "open")
