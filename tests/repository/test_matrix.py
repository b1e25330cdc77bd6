"""The matrix of versions: what its cells install, what it reads from their tests, and the page that it writes."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tools.matrix.__main__ as matrix
from tools.matrix import environment
from tools.matrix.__main__ import main
from tools.matrix.cells import CELLS, Cell, UnknownCellError, named
from tools.matrix.environment import EnvironmentFailedError, prepare, variables
from tools.matrix.outcome import Outcome, load, read_report, save
from tools.matrix.page import page_of

_ROOT = Path(__file__).parents[2]
_THREE = """
import pytest
def test_one(): pass
def test_two(): assert 1 == 2
@pytest.mark.skip(reason="no variants | here")
def test_three(): pass
"""


def _cell(name: str, row: str = "4.1", column: str = "driver alone", constraints: str = "constraints.txt") -> Cell:
    return Cell(name, row, column, "3.11", ("numpy",), ("tests/core",), constraints=constraints)


def _outcome(cell: str, passed: int = 3, failed: tuple[str, ...] = (), stopped: str = "") -> Outcome:
    return Outcome(cell, passed, {"no variants | here": 2}, list(failed), stopped, {"pyspark": "3.5.9"}, 1.5, "abc1234")


def _tested(folder: Path, code: str, *others: str) -> Outcome:
    """Run these tests with pytest, and return what the matrix reads from the report."""
    (folder / "test_it.py").write_text(code)
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={folder}", f"--junit-xml={report}"]
    command = [sys.executable, "-m", "pytest", *options, "test_it.py", *others]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return read_report("some", report, done.returncode, {}, 2.0)


def test_cells_have_names_and_places_of_their_own() -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert len({(cell.row, cell.column) for cell in CELLS}) == len(CELLS)


def test_each_python_runs_a_worker_and_a_driver() -> None:
    workers = {cell.python for cell in CELLS if "tests/airflow" in cell.tests}
    drivers = {cell.python for cell in CELLS if "tests/spark" in cell.tests and not cell.has_project}
    assert workers == drivers == {"3.11", "3.12", "3.13"}


def test_driver_of_a_cell_is_a_cell_without_the_package() -> None:
    for cell in CELLS:
        assert [each.has_project for each in named([cell.driver] if cell.driver else ["spark-3.5"])] == [False]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_cell_names_what_is_there(cell: Cell) -> None:
    pins = (_ROOT / cell.constraints).read_text()

    assert [path for path in (*cell.tests, *cell.in_brief) if not (_ROOT / path).exists()] == []
    assert [path for path in cell.in_brief if not path.startswith(cell.tests)] == []
    assert "://" not in pins
    assert re.search(r"^pytest==", pins, re.MULTILINE)


def test_unknown_cell_is_refused_before_anything_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownCellError, match=r"no cell spark-1.0; there are: spark-3.5, .* Nothing was run"):
        named(["spark-3.5", "spark-1.0"])

    assert main(["spark-1.0"]) == 2
    assert "no cell spark-1.0" in capsys.readouterr().err


def test_cell_that_is_named_twice_is_run_once() -> None:
    assert [cell.name for cell in named(["spark-3.5", "spark-4.2", "spark-3.5"])] == ["spark-3.5", "spark-4.2"]


def test_second_matrix_in_a_clone_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(matrix, "_FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "_OUTCOMES", tmp_path)
    with tmp_path.joinpath("lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["spark-3.5"]) == 2
    assert "another one runs in this clone" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_no_name_is_every_cell() -> None:
    assert named([]) == CELLS
    assert [cell.name for cell in named(["spark-4.0", "spark-3.5"])] == ["spark-4.0", "spark-3.5"]


@pytest.mark.seldom
def test_outcome_counts_what_passed_failed_and_was_switched_off(tmp_path: Path) -> None:
    outcome = _tested(tmp_path, _THREE)

    assert (outcome.passed, outcome.switched_off) == (1, {"no variants | here": 1})
    assert outcome.failed == ["test_it::test_two"]
    assert not outcome.is_good
    assert outcome.summary == "1 passed, 1 switched off, 1 failed"


@pytest.mark.seldom
def test_module_that_is_skipped_as_a_whole_says_why(tmp_path: Path) -> None:
    code = "import pytest\npytest.importorskip('absent_here', reason='no absent, which is an extra')\n"
    (tmp_path / "test_other.py").write_text("def test_one(): pass\n")
    assert _tested(tmp_path, code, "test_other.py").switched_off == {"no absent, which is an extra (a whole module)": 1}


@pytest.mark.seldom
def test_error_before_a_test_is_a_failure(tmp_path: Path) -> None:
    code = "import pytest\n@pytest.fixture\ndef broken(): raise OSError\ndef test_one(broken): pass\n"

    assert _tested(tmp_path, code).failed == ["test_it::test_one"]


@pytest.mark.seldom
@pytest.mark.parametrize("code", ["import absent_package", "", "x ="], ids=["no import", "no tests", "no syntax"])
def test_tests_that_can_not_be_collected_are_no_good_outcome(tmp_path: Path, code: str) -> None:
    outcome = _tested(tmp_path, code)

    assert not outcome.is_good
    assert re.fullmatch(r"STOPPED: pytest ended with [2-5]", outcome.summary)


@pytest.mark.seldom
def test_cell_whose_tests_are_all_switched_off_is_no_good_outcome(tmp_path: Path) -> None:
    assert not _tested(tmp_path, "import pytest\npytestmark = pytest.mark.skip('no')\ndef test_one(): pass\n").is_good


def test_outcome_is_kept(tmp_path: Path) -> None:
    assert load("some", tmp_path) is None
    save(_outcome("some"), tmp_path)

    assert load("some", tmp_path) == _outcome("some")


def test_page_has_a_row_for_each_spark_and_says_what_is_switched_off() -> None:
    later = replace(_cell("d", "4.2"), python="3.13")
    cells = [_cell("a", "3.5"), _cell("b", "4.1"), _cell("c", "4.1", "Airflow 3.2"), later]
    outcomes = {
        "a": _outcome("a"),
        "b": _outcome("b", failed=("tests.core::test_x",)),
        "c": _outcome("c", stopped="pytest ended with 2"),
        "d": _outcome("d"),
    }

    lines = page_of(cells, outcomes).splitlines()

    assert lines[lines.index("| Spark | driver alone | Airflow 3.2 |") :][:5] == [
        "| Spark | driver alone | Airflow 3.2 |",
        "|---|---|---|",
        "| 3.5 | 3 passed, 2 off |  |",
        "| 4.1 | 3 passed, 2 off, **1 failed** | not run to its end |",
        "| 4.2 | Python 3.13: 3 passed, 2 off |  |",
    ]
    assert "| no variants / here | 2 |" in lines
    assert "- `tests.core::test_x`" in lines
    assert "Python 3.11, pyspark 3.5.9. Ran `tests/core`, of abc1234." in lines


def test_environment_that_can_not_be_made_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    absent = Cell("absent", "4.1", "driver alone", "3.99", ("numpy",), ("tests/core",))

    with pytest.raises(EnvironmentFailedError, match=r"(?s)'uv venv --quiet' failed:.*3\.99"):
        prepare(absent)

    assert not (tmp_path / ".matrix" / "absent" / ".installed").exists()


def test_newest_patch_that_pyenv_keeps_is_taken_though_it_is_not_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    for version in ("3.99.9", "3.99.10", "3.9.1"):
        (tmp_path / "versions" / version / "bin").mkdir(parents=True)
        (tmp_path / "versions" / version / "bin" / "python").symlink_to("/bin/false")

    with pytest.raises(EnvironmentFailedError, match=r"versions/3\.99\.10/bin/python"):
        prepare(Cell("absent", "4.1", "driver alone", "3.99", ("numpy",), ("tests/core",)))


def test_environment_is_made_once_and_anew_when_its_pins_change(tmp_path: Path) -> None:
    """The real thing, with the smallest of packages: what overrides says wins over the constraints."""
    (tmp_path / "constraints.txt").write_text("iniconfig==2.0.0\nnycflights13==0.0.3\n")
    (tmp_path / "pyproject.toml").write_text("")
    cell = Cell("small", "", "", "3.11", ("iniconfig",), (), overrides=("iniconfig==2.1.0",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "ROOT", tmp_path)
        folder = prepare(cell)
        made = (folder / ".installed").stat().st_mtime_ns
        assert [path.name for path in folder.glob("lib/*/site-packages/iniconfig-*")] == ["iniconfig-2.1.0.dist-info"]
        prepare(cell)
        assert (folder / ".installed").stat().st_mtime_ns == made
        (tmp_path / "constraints.txt").write_text("iniconfig==2.1.0\nnycflights13==0.0.3\n")
        prepare(cell)
        assert (folder / ".installed").stat().st_mtime_ns != made


def test_wheel_is_installed_anew_when_the_package_or_readme_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "airflow_bookmarks").mkdir()
    files = [tmp_path / name for name in ("constraints.txt", "pyproject.toml", "README.md", "airflow_bookmarks/a.py")]
    for path in files:
        path.write_text("")
    cell = Cell("wheel", "", "", "3.11", (), (), has_project=True, is_wheel=True)
    seen = [environment._fingerprint(cell)]
    for path in files:
        path.write_text("changed")
        seen.append(environment._fingerprint(cell))

    assert len(set(seen)) == len(files) + 1


def test_driver_imports_the_package_from_the_clone_and_a_worker_has_it_installed(tmp_path: Path) -> None:
    driver = variables(_cell("driver"), tmp_path)
    worker = variables(Cell("worker", "", "", "3.11", (), (), has_project=True), tmp_path)

    assert driver["PYTHONPATH"] == str(_ROOT)
    assert "PYTHONPATH" not in worker
    assert worker["PATH"].startswith(f"{tmp_path / 'bin'}{os.pathsep}")
    assert "CLUSTERS_PYTHON" not in worker
    assert worker["PYSPARK_PYTHON"] == str(tmp_path / "bin" / "python")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the matrix have two cells whose environments are this one, and a page and folder of its own."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_short(): pass\n@pytest.mark.thorough\ndef test_long(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    thorough: more\n    own_spark: a Spark\n    slow: s\n    seldom: s\n"
    )
    cells = tuple(replace(_cell(name, column=name), tests=("test_it.py",)) for name in ("one", "two"))
    for name, value in {
        "CELLS": cells,
        "ROOT": tmp_path,
        "_FOLDER": tmp_path / "build",
        "_OUTCOMES": tmp_path / "outcomes",
        "_PAGE": tmp_path / "compatibility.md",
        "named": lambda names: tuple(cell for cell in cells if cell.name in names) or cells,
        "prepare": lambda cell: Path(sys.prefix),
    }.items():
        monkeypatch.setattr(matrix, name, value)
    return tmp_path


@pytest.mark.seldom
def test_page_says_what_each_cell_came_to_last(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["one", "--workers", "1"]) == 0
    assert "wrote compatibility.md, from 1 of 2 cells" in capsys.readouterr().out
    assert "| 4.1 | 1 passed | not run |" in (small / "compatibility.md").read_text()

    assert main(["two", "--workers", "1"]) == 0
    assert "| 4.1 | 1 passed | 1 passed |" in (small / "compatibility.md").read_text()


@pytest.mark.seldom  # starts pytest in pytest for each cell
def test_thorough_tests_are_run_where_they_are_asked_for_and_the_page_says_so(small: Path) -> None:
    assert main(["one", "two", "--thorough", "--workers", "1"]) == 0
    assert main(["two", "--workers", "1"]) == 0

    lines = (small / "compatibility.md").read_text().splitlines()
    assert "| 4.1 | 2 passed | 1 passed |" in lines
    assert [re.findall(r"Ran (.*), of", line)[0] for line in lines if ". Ran " in line] == [
        "`test_it.py` with the thorough ones",
        "`test_it.py`",
    ]


@pytest.mark.seldom
def test_brief_cell_leaves_out_what_takes_long_and_says_nothing_on_the_page(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (small / "test_it.py").open("a") as module:
        module.write("@pytest.mark.own_spark\ndef test_of_a_table(): pass\n")
        module.write("@pytest.mark.slow\ndef test_that_is_slow(): pass\n")
        module.write("@pytest.mark.seldom\ndef test_that_is_seldom(): pass\n")
    assert main(["one", "--workers", "1"]) == 0
    page = (small / "compatibility.md").read_text()
    capsys.readouterr()

    assert main(["one", "two", "--brief", "--workers", "1"]) == 0

    assert capsys.readouterr().out.count(": 1 passed, 0 switched off") == 2
    assert (small / "compatibility.md").read_text() == page
    assert "| 4.1 | 4 passed | not run |" in page


@pytest.mark.seldom
def test_brief_cell_runs_what_it_names_of_its_tests(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (small / "test_more.py").write_text("def test_more(): assert False, 'left out'\n")
    cell = replace(_cell("one", column="one"), tests=("test_it.py", "test_more.py"), in_brief=("test_it.py",))
    monkeypatch.setattr(matrix, "named", lambda names: (cell,))

    assert main(["one", "--brief", "--workers", "1"]) == 0
    assert main(["one", "--workers", "1"]) == 1


@pytest.mark.seldom
def test_promises_with_a_spark_of_their_own_are_marked() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"]
    paths = ["tests/spark/test_delta_source.py", "tests/spark/test_life.py"]
    done = subprocess.run([*command, "-m", "own_spark", *paths], cwd=_ROOT, capture_output=True, text=True, check=True)
    assert "test_delta_source.py" in done.stdout
    assert "test_life.py" not in done.stdout


@pytest.mark.seldom
def test_matrix_that_was_stopped_goes_on_with_what_is_left_of_the_same_state(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (small / ".gitignore").write_text("build\n")
    git = ["git", "-C", str(small), "-c", "user.name=ada", "-c", "user.email=ada@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    assert main(["one", "--workers", "1"]) == 0
    for command in (["add", "."], ["commit", "-qm", "what it came to"]):
        subprocess.run([*git, *command], check=True)
    capsys.readouterr()

    assert main(["--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "one: 1 passed, 0 switched off, 0 failed on this state before" in said
    assert (said.count("one begins"), said.count("two begins")) == (0, 1)

    (small / "test_it.py").write_text("def test_other(): pass\n")
    assert main(["--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert (said.count("one begins"), said.count("two begins")) == (1, 1)


@pytest.mark.seldom  # starts pytest in pytest for each cell
def test_without_a_history_each_cell_is_run(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["one", "--workers", "1"]) == 0
    assert main(["--workers", "1"]) == 0
    assert "1 of 2" not in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.seldom  # starts pytest in pytest for each cell
def test_cell_whose_tests_are_all_thorough_runs_them(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(_cell("one", column="one"), tests=("test_it.py",), is_thorough=True)
    monkeypatch.setattr(matrix, "named", lambda names: (one,))

    assert main(["one", "--workers", "1"]) == 0
    assert "| 4.1 | 2 passed | not run |" in (small / "compatibility.md").read_text()


def test_tests_of_a_cell_get_its_variables_and_the_python_of_its_driver(tmp_path: Path) -> None:
    cell = Cell("some", "", "", "3.11", (), (), environment=(("SPARK_TESTS_SESSION", "connect"),), driver="spark-3.5")

    found = variables(cell, tmp_path)

    assert found["SPARK_TESTS_SESSION"] == "connect"
    assert found["CLUSTERS_PYTHON"] == str(_ROOT / ".matrix" / "spark-3.5" / "bin" / "python")


def test_each_spark_compiles_queries_in_one_of_its_cells(tmp_path: Path) -> None:
    compiled = {cell.row for cell in CELLS if variables(cell, tmp_path).get("SPARK_TESTS_CODEGEN") == "1"}
    assert {cell.row.partition(",")[0] for cell in CELLS} <= compiled
    assert not any("Connect" in row for row in compiled)


def test_override_with_an_extra_replaces_the_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "constraints.txt").write_text("pyspark==4.1.3\npyspark-client==4.1.3\n")
    cell = Cell("some", "", "", "3.11", (), (), overrides=("pyspark[connect]==3.5.9",))

    assert environment._pins(cell, tmp_path).read_text() == "pyspark-client==4.1.3\n"


def test_unknown_cell_is_told_before_anything_is_set_up(tmp_path: Path) -> None:
    command = ["make", "matrix", "ONLY=spark-3.5 nonsense", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no cell nonsense; there are: spark-3.5," in done.stderr
    assert list(tmp_path.iterdir()) == []
