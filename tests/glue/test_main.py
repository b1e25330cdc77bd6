"""The commands of the Glue layer."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import airflow_bookmarks
from airflow_bookmarks.glue.__main__ import main
from airflow_bookmarks.glue.inventory.surface import ABSENT_PACKAGES

ROOT = Path(airflow_bookmarks.__file__).parents[1]


def checked(path: str, what: str = "awsglue") -> tuple[int, str]:
    """Return the exit code and a row of `check` with a path."""
    command = [sys.executable, "-m", "airflow_bookmarks.glue", "check", "--output", "json"]
    done = subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.returncode, {row["what"]: row["found"] for row in json.loads(done.stdout)}[what]


def test_path_is_the_folder_that_scripts_import_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["path"]) == 0
    folder = capsys.readouterr().out.strip()
    assert (Path(folder) / "awsglue" / "__init__.py").is_file()
    assert checked(f"{ROOT}:{folder}") == (0, f"{folder}/awsglue/__init__.py")


def test_check_names_what_is_missing_or_comes_first(tmp_path: Path) -> None:
    code, found = checked(str(ROOT))
    assert (code, found) == (1, 'not on the path: PYTHONPATH="$(python -m airflow_bookmarks.glue path):$PYTHONPATH"')
    other = tmp_path / "awsglue" / "__init__.py"
    other.parent.mkdir()
    other.touch()
    code, found = checked(f"{tmp_path}:{ROOT}:{ROOT}/airflow_bookmarks/glue/path")
    assert code == 1
    assert found.startswith(f"another one comes first: {other}")


def test_check_says_where_the_package_is_imported_from() -> None:
    assert checked(str(ROOT), "airflow_bookmarks")[1] == str(ROOT / "airflow_bookmarks")


@pytest.mark.seldom
def test_check_says_which_watermarks_a_script_gets(tmp_path: Path) -> None:
    module, ours = "scripts.helpers.watermarks", f"{tmp_path}:{ROOT}:{ROOT}/airflow_bookmarks/glue/path"
    assert checked(ours, module) == (0, "found beside awsglue")
    own = tmp_path / "scripts"
    own.mkdir()
    (own / "load.py").touch()
    assert checked(ours, module) == (0, "found beside awsglue")  # a folder without __init__.py hides nothing
    (own / "__init__.py").touch()
    code, found = checked(ours, module)
    assert (code, found.startswith(f"found once the script has imported awsglue: {own}, a package of your own")) == (
        0,
        True,
    )
    (own / "watermarks.py").touch()
    assert checked(ours, module)[1] == found
    (own / "helpers").mkdir()
    (own / "helpers" / "watermarks.py").touch()
    assert checked(ours, module) == (0, f"one of your own, which stays: {own}/helpers/watermarks.py")
    code, found = checked(str(ROOT), module)
    assert (code, found.startswith("not on the path")) == (1, True)
    (own / "helpers" / "watermarks.py").unlink()
    code, found = checked(f"{tmp_path}:{ROOT}", module)  # without awsglue there is no import that would bring it
    assert (code, found.startswith("not on the path")) == (1, True)


def test_zip_has_both_packages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zip", "--folder", str(tmp_path)]) == 0
    with zipfile.ZipFile(capsys.readouterr().out.strip()) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {
            "airflow_bookmarks",
            "awsglue",
            "scripts",
            *ABSENT_PACKAGES,  # their import says why they are not there
        }


def test_inventory_is_a_table_for_people_and_json_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "a.py"
    script.write_text("from awsglue.job import Job\nglueContext.start_transaction(True)\n", encoding="utf-8")
    assert main(["inventory", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "out of reach" in text
    assert "start_transaction" in text
    assert main(["inventory", "--output", "json", str(script)]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["out_of_reach"][0]["line"] == 2


def test_bookmark_is_imported_shown_and_reset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_BOOKMARKS_STORE", f"sqlite:///{tmp_path}/bookmarks.db?create=true")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.csv").touch()
    timestamps = {"RUN": "1", "HIGH_BAND": "0", "CURR_RUN_START_TIME": "2100-01-01T00:00:00Z", "INCLUDE_LIST": ""}
    state = {"raw": {"jsonClass": "HadoopDataSourceJobBookmarkState", "timestamps": timestamps}}
    entry = {"JobName": "nightly", "RunId": "jr_1", "JobBookmark": json.dumps(state)}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"JobBookmarkEntry": entry})))

    assert main(["import-job-bookmark", "-", "--path", f"raw={tmp_path}/raw"]) == 0
    assert "1 file counted as read" in capsys.readouterr().out
    assert main(["get-job-bookmark", "--job-name", "nightly"]) == 0
    assert json.loads(capsys.readouterr().out)["JobBookmarkEntry"]["RunId"] == "glue/jr_1"
    assert main(["reset-job-bookmark", "--job-name", "nightly", "--reason", "a try"]) == 0
    assert json.loads(capsys.readouterr().out)["JobBookmarkEntry"]["Run"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["get-job-bookmark", "--job-name", "no.such"],
        ["import-job-bookmark", "no-such-file"],
        ["inventory", "no-such-folder"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_refusal_is_told_on_stderr(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_BOOKMARKS_STORE", f"sqlite:///{tmp_path}/bookmarks.db?create=true")
    assert main(arguments) == 1
    assert capsys.readouterr().err.startswith("python -m airflow_bookmarks.glue: ")


def test_wrong_usage_has_an_exit_code_of_its_own() -> None:
    with pytest.raises(SystemExit) as wrong:
        main(["no-such-command"])
    assert wrong.value.code == 2
