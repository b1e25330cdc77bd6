"""What is imported when: layers point one way, the root is light, the wheel says what the code says."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest

import airflow_bookmarks
from tests.repository.import_graph import circles_of, import_graph
from tests.syntax import parsed
from tests.thorough import mostly_thorough

_ROOT = Path(__file__).parents[2]
_HEAVY = {"airflow", "boto3", "botocore", "numpy", "pandas", "pyarrow", "pyspark"}


@functools.cache
def _tree(path: Path) -> ast.Module:
    """Return the syntax tree of a module, built once for all tests here: that takes seconds for the whole package."""
    return parsed(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def no_trees_behind_these_tests() -> Iterator[None]:
    yield
    _tree.cache_clear()


def _loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a new interpreter has loaded after `statement`."""
    script = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=_ROOT)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, capture_output=True, check=True, cwd=_ROOT)
    (path,) = folder.glob("*.whl")
    return path


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode())


def test_imports_point_one_way() -> None:
    lint = Path(sys.executable).with_name("lint-imports")

    done = subprocess.run([lint, "--no-cache", "--no-logo"], capture_output=True, text=True, check=False, cwd=_ROOT)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "import airflow_bookmarks; airflow_bookmarks.__version__; dir(airflow_bookmarks)",
        "from airflow_bookmarks.get_provider_info import get_provider_info; get_provider_info()",
        "from airflow_bookmarks.cli import airflow_commands",
    ],
    ids=["root", "provider info", "command line"],
)
def test_what_airflow_imports_at_discovery_is_light(statement: str) -> None:
    assert _loaded_by(statement) & _HEAVY == set()


@pytest.mark.parametrize("name", mostly_thorough(sorted(set(airflow_bookmarks.__all__) - {"__version__"})))
def test_public_name_comes_from_the_root(name: str, tmp_path: Path) -> None:
    script = f"import airflow_bookmarks as root; print(root.{name}.__name__, {name!r} in dir(root))"
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path)}

    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT, env=environment)

    assert done.stdout.split() == [name, "True"]


@pytest.mark.parametrize(
    "name", ["operators.spark_submit.BookmarkSparkSubmitOperator", "sensors.bookmark.BookmarkSensor"]
)
def test_what_a_dag_file_imports_is_light(name: str) -> None:
    module, _, name = name.rpartition(".")

    loaded = _loaded_by(f"from airflow_bookmarks.{module} import {name}")

    assert loaded & {"boto3", "botocore", "numpy", "pyspark"} == set()


def _imports_of_airflow(node: ast.AST) -> bool:
    """Whether a piece of code imports Airflow or a provider of it."""
    modules = [each.module or "" for each in ast.walk(node) if isinstance(each, ast.ImportFrom)]
    modules += [name.name for each in ast.walk(node) if isinstance(each, ast.Import) for name in each.names]
    return any(module.partition(".")[0] == "airflow" for module in modules)


def test_what_versions_of_airflow_lack_is_known_to_one_module() -> None:
    package = _ROOT / "airflow_bookmarks"
    trying, counting = set(), set()
    for path in package.rglob("*.py"):
        text, name = path.read_text(), path.relative_to(package).as_posix()
        trying |= {name for node in ast.walk(_tree(path)) if isinstance(node, ast.Try) and _imports_of_airflow(node)}
        if re.search(r"airflow\.(version|__version__)|version\([\"']apache-airflow|AIRFLOW_V_", text):
            counting.add(name)

    assert trying == {"airflow_compat.py"}
    assert counting == set()


def test_store_is_opened_without_spark_and_airflow() -> None:
    assert _loaded_by("from airflow_bookmarks import open_store") & {"airflow", "pyspark"} == set()


def test_unknown_name_of_the_root_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="BookmarkedJobs"):
        _ = airflow_bookmarks.BookmarkedJobs


def test_wheel_has_the_name_and_version_of_the_package(wheel: Path) -> None:
    metadata = _metadata(wheel)

    assert metadata["Name"] == "airflow-provider-bookmarks"
    assert metadata["Version"] == airflow_bookmarks.__version__
    assert metadata["License-Expression"] == "Apache-2.0"


def test_wheel_requires_what_the_worker_needs_and_spark_only_as_an_extra(wheel: Path) -> None:
    required = _metadata(wheel).get_all("Requires-Dist", [])

    assert sorted(r for r in required if "extra ==" not in r) == [
        "apache-airflow-providers-amazon",
        "apache-airflow-providers-apache-spark",
        "apache-airflow>=3.0.6",
        "boto3",
        "numpy",
    ]
    assert sorted(r.partition(";")[0] for r in required if "extra == 'spark'" in r) == [
        "pyspark-client==4.1.3",
        "pyspark==4.1.3",
    ]


def test_wheel_is_typed_and_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert "airflow_bookmarks/py.typed" in names
    assert {name.partition("/")[0] for name in names} == {
        "airflow_bookmarks",
        f"airflow_provider_bookmarks-{airflow_bookmarks.__version__}.dist-info",
    }


def test_wheel_is_found_by_airflow_and_has_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        entry_points = archive.read(name).decode()

    assert "[apache_airflow_provider]" in entry_points
    assert "= airflow_bookmarks.get_provider_info:get_provider_info" in entry_points
    assert "airflow-bookmarks = airflow_bookmarks.cli:main" in entry_points


def test_class_names_are_unique_in_the_package() -> None:
    places = defaultdict[str, list[str]](list)
    for path in sorted((_ROOT / "airflow_bookmarks").rglob("*.py")):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(_ROOT)))

    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_modules_import_each_other_in_no_circle() -> None:
    graph = import_graph(_ROOT / "airflow_bookmarks")
    circles = [[name.removeprefix("airflow_bookmarks.") for name in circle] for circle in circles_of(graph)]

    assert len(graph) > 200
    assert circles == []


def test_no_folder_has_more_modules_than_a_dozen() -> None:
    modules = defaultdict[str, int](int)
    for path in (_ROOT / "airflow_bookmarks").rglob("*.py"):
        modules[str(path.parent.relative_to(_ROOT))] += path.name != "__init__.py"

    assert {folder: count for folder, count in modules.items() if count > 12} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "from package import first",
        "from package.first import name",
        "import package.first",
        "from . import first",
        "from .first import name",
        "def late():\n    from package.first import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.first import name",
    ],
)
def test_circle_is_found_wherever_its_imports_stand(statement: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from package.second import name")
    (package / "second.py").write_text(statement)
    (package / "third.py").write_text("from package import first, second")

    assert circles_of(import_graph(package)) == [["package.first", "package.second"]]


def test_no_object_is_given_another_class() -> None:
    places = [
        f"{path.relative_to(_ROOT)}:{node.lineno}"
        for path in sorted((_ROOT / "airflow_bookmarks").rglob("*.py"))
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "__class__"
    ]

    assert places == []


def test_table_of_a_store_and_the_size_of_its_requests_are_known_to_the_store_alone() -> None:
    package = Path(airflow_bookmarks.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        if path.is_relative_to(package / "store"):
            continue
        for node in ast.walk(_tree(path)):
            reaches_in = isinstance(node, ast.Attribute) and node.attr == "table" and "store" in ast.unparse(node.value)
            if reaches_in or (isinstance(node, ast.alias) and node.name == "MAX_OPERATIONS"):
                found.add(path.relative_to(package).as_posix())
    # It puts a table of its own before that of the store, which stops answering where a test lets the driver die.
    assert found == {"testing/driver.py"}


def _importers_of(module: str, outside: str) -> set[str]:
    """Return which modules of the package import a module, or one below it, also for types alone; none of `outside`."""
    graph = import_graph(_ROOT / "airflow_bookmarks")
    importers = {name for name, imported in graph.items() for one in imported if f"{one}.".startswith(f"{module}.")}
    return {name.removeprefix("airflow_bookmarks.") for name in importers if not name.startswith(f"{outside}.")}


def test_table_and_its_operations_are_imported_by_the_store_alone() -> None:
    store = "airflow_bookmarks.store"

    # A table that dies where a test says so has to be one.
    assert _importers_of(f"{store}.table", store) == {"testing.crash"}
    # The page opens its table with short limits of its own; a test of a script runs over one in memory.
    assert _importers_of(f"{store}.backends", store) == {"plugin.connection", "testing.memory"}


def test_items_as_they_are_stored_are_known_to_few() -> None:
    raw = {"lifecycle.maintenance", "lifecycle.inspect.waiting"}  # what examines, exports and collects; what polls
    entries = {"lifecycle.changes.naming", "lifecycle.changes.sharing", "lifecycle.inspect.status"}
    entries |= {
        "plugin.presenters.all_jobs",
        "plugin.presenters.health",
        "plugin.presenters.job_list",
        "plugin.presenters.sharded_job",
        "plugin.presenters.waiting_requests",
    }
    sides = {"lifecycle.inspect.runs", "testing.driver", "testing.result"}

    importers = _importers_of("airflow_bookmarks.store.stored_item", "airflow_bookmarks.store")

    assert {
        "lifecycle.maintenance" if name.startswith("lifecycle.maintenance.") else name for name in importers
    } == raw | entries | sides


def _compared(path: Path, attribute: str) -> list[str]:
    """Return the comparisons in a module that have this attribute of something in them."""
    return [
        ast.unparse(node)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Compare)
        and any(isinstance(part, ast.Attribute) and part.attr == attribute for part in ast.walk(node))
    ]


def test_end_of_a_lease_is_compared_with_a_clock_in_one_place() -> None:
    package = _ROOT / "airflow_bookmarks"
    found = {path.relative_to(package).as_posix(): _compared(path, "expires_at") for path in package.rglob("*.py")}
    # An import that has begun is told by the end of its lease, which no clock reaches.
    assert {path: compared for path, compared in found.items() if compared} == {
        "core/head.py": ["now < self.expires_at"],
        "store/transitions/importing.py": ["head.lease.expires_at == _NO_END"],
    }


def test_whether_a_run_is_history_is_asked_of_the_run() -> None:
    package = _ROOT / "airflow_bookmarks"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "is_living"
    }

    assert found == {"core/timeline.py"}


def test_error_of_a_job_that_is_held_is_made_in_one_place() -> None:
    package = _ROOT / "airflow_bookmarks"
    makers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("JobBusyError")
    }

    assert makers == {"core/head.py"}


# What people are shown, what tests of users look at, and the kinds that have written it themselves.
_SHOWN = {"lifecycle/state/summary.py", "lifecycle/inspect/runs.py"}
_MAY_READ_STATS = ("core/metadata/", "sources/", "plugin/", "cli/", "testing/")


def _reads_by_key(tree: ast.AST) -> list[str]:
    """Return where a module takes one value out of stats: `.stats["a"]`, `.stats.get("a")`, `a in x.stats`.

    Where it gives them a name, it may do so in the next line.
    """

    def holds(node: ast.AST) -> bool:
        named = node.func if isinstance(node, ast.Call) else node
        return isinstance(named, ast.Attribute) and named.attr == "stats"

    def is_stats(value: ast.expr) -> bool:
        either = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
        return any(isinstance(each, ast.Attribute) and each.attr == "stats" for each in either)

    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Subscript) and holds(node.value))
        or (isinstance(node, ast.Attribute) and node.attr == "get" and holds(node.value))
        or (isinstance(node, ast.Compare) and any(holds(each) for each in node.comparators))
        or (
            isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
            and node.value is not None
            and is_stats(node.value)
        )
    ]


@pytest.mark.parametrize(
    "text",
    [
        "entry.stats['files']",
        "run.plans[ctx].stats.get('files', 0)",
        "found.stats.get('options')",
        "plan.stats()['options']",
        "plan.stats().get('options')",
        "'moved_from' not in entry.stats",
        "facts = {} if plan is None else plan.stats",
    ],
)
def test_read_of_one_value_of_stats_is_found(text: str) -> None:
    assert len(_reads_by_key(parsed(text))) == 1


def test_stats_are_asked_by_type_wherever_something_is_decided() -> None:
    package = _ROOT / "airflow_bookmarks"
    found = {path.relative_to(package).as_posix(): _reads_by_key(_tree(path)) for path in package.rglob("*.py")}

    decided = {path: reads for path, reads in found.items() if reads and not path.startswith(_MAY_READ_STATS)}
    assert {path: reads for path, reads in decided.items() if path not in _SHOWN} == {}


def test_what_a_run_measured_is_asked_by_type_wherever_something_is_decided() -> None:
    package = _ROOT / "airflow_bookmarks"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node).endswith((".metrics.get('contexts', {})",))
    }

    # Beside these, what is shown: in sums, on the page, and to those who test their own jobs.
    shown = _SHOWN | {"lifecycle/history/read_again.py", "plugin/presenters/job_list.py", "testing/result.py"}
    assert found == shown | {"core/run.py"}


def test_decisions_are_where_the_architecture_says() -> None:
    text = (_ROOT / "docs" / "contributing" / "architecture.md").read_text()
    named = re.findall(r"`((?:core|store|sources|files|lifecycle|operators|plugin)/[\w/]+\.py)(?:::(\w+))?`", text)

    absent = [
        f"{path}::{name}"
        for path, name in named
        if not (file := _ROOT / "airflow_bookmarks" / path).is_file()
        or (name and not re.search(rf"^ *def {name}\(", file.read_text(), re.MULTILINE))
    ]

    assert len(named) > 15
    assert absent == []
