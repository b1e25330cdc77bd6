"""The zip of the runtime: what the driver gets."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from airflow_bookmarks.glue.inventory.surface import ABSENT_PACKAGES
from airflow_bookmarks.operators.runtime_zip import RuntimeZipError, glue_zip, runtime_zip
from airflow_bookmarks.version import __version__
from tests.syntax import parsed


def test_zip_holds_what_the_driver_needs_and_nothing_of_airflow(tmp_path: Path) -> None:
    with zipfile.ZipFile(runtime_zip(tmp_path)) as archive:
        folders = {name.split("/")[1] for name in archive.namelist()}

    assert folders == {
        "__init__.py", "own_kind.py", "version.py", "py.typed",
        "core", "databases", "store", "files", "sources", "sinks", "lifecycle", "spark", "glue",
    }  # fmt: skip


def test_only_the_zip_for_glue_has_what_hides_the_real_awsglue(tmp_path: Path) -> None:
    with zipfile.ZipFile(runtime_zip(tmp_path)) as archive:
        plain = set(archive.namelist())
    with zipfile.ZipFile(glue_zip(tmp_path)) as archive:
        more = set(archive.namelist()) - plain

    assert not [name for name in plain if "awsglue" in name]
    assert {"awsglue/__init__.py", "awsglue/job.py", "scripts/helpers/watermarks.py"} <= more
    assert {name.partition("/")[0] for name in more} == {"awsglue", "scripts", *ABSENT_PACKAGES}


def test_names_for_glue_are_imported_from_their_zip(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from scripts.helpers.watermarks import Watermarks\n"
        "from awsglue.utils import getResolvedOptions\n"
        "import awsglue\n"
        "assert sys.argv[1] in awsglue.__file__\n"
        "print(Watermarks.__name__)\n"
    )
    command = [sys.executable, "-c", script, str(glue_zip(tmp_path))]

    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)

    assert done.stdout.split() == ["Watermarks"]


def test_zip_holds_every_module_of_the_package_that_one_of_its_own_imports(tmp_path: Path) -> None:
    with zipfile.ZipFile(runtime_zip(tmp_path)) as archive:
        sources = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")}

    del sources["airflow_bookmarks/__init__.py"]  # it names Airflow's parts too, and loads each when it is asked for
    names = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in sources]
    shipped = {"airflow_bookmarks", *names}
    imported = {
        module: name
        for name, source in sources.items()
        for node in ast.walk(parsed(source))
        for module in imported_by(node)
        if module.partition(".")[0] == "airflow_bookmarks"
    }
    assert {module: name for module, name in imported.items() if module not in shipped} == {}


def imported_by(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports from, also one within a function."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def test_same_content_gives_the_same_bytes_and_name(tmp_path: Path) -> None:
    first = runtime_zip(tmp_path)
    content, made = first.read_bytes(), first.stat().st_mtime_ns
    again = runtime_zip(tmp_path)
    other = tmp_path / "other"
    other.mkdir()

    assert (again, again.stat().st_mtime_ns) == (first, made)
    assert runtime_zip(other).read_bytes() == content
    assert first.name.startswith(f"airflow_bookmarks-{__version__}-")


def test_zip_that_was_cut_short_is_written_anew(tmp_path: Path) -> None:
    path = runtime_zip(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:1000])

    assert runtime_zip(tmp_path).read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_runtime_is_imported_from_the_zip_without_airflow(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from airflow_bookmarks import open_store, __version__\n"
        "from airflow_bookmarks.lifecycle.run.enabled import ActiveRun\n"
        "import airflow_bookmarks\n"
        "assert sys.argv[1] in airflow_bookmarks.__file__\n"
        "assert 'airflow' not in sys.modules\n"
        "print(__version__, open_store('sqlite:///:memory:?create=true').jobs())\n"
    )
    command = [sys.executable, "-c", script, str(runtime_zip(tmp_path))]

    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)

    assert done.stdout.split() == [__version__, "[]"]


def test_folder_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = runtime_zip().parent
    assert folder.stat().st_mode & 0o777 == 0o700

    folder.chmod(0o777)

    with pytest.raises(RuntimeZipError, match="can be written by others"):
        runtime_zip()


def test_command_writes_the_zip_and_prints_where_it_lies() -> None:
    command = [sys.executable, "-m", "airflow_bookmarks.operators.runtime_zip"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert Path(done.stdout.strip()).read_bytes() == runtime_zip().read_bytes()
