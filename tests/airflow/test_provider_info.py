"""Airflow finds the provider, its connection type and its commands, and is not slowed by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution, entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from airflow_bookmarks import __version__
from airflow_bookmarks.airflow_compat import BaseHook
from airflow_bookmarks.get_provider_info import get_provider_info
from tests.airflow.compat import needs_connection_form

_DISTRIBUTION = "airflow-provider-bookmarks"
_HEAVY = ("boto3", "botocore", "numpy", "pyspark")

_VERSION_COMMAND = """
import sys
from airflow.__main__ import main
sys.argv = ["airflow", "version"]
main()
print("loaded", [name for name in {heavy!r} if name in sys.modules])
"""

_CONNECTION_TYPE = """
import json
from airflow.providers_manager import ProvidersManager
manager = ProvidersManager()
hook = manager.hooks["bookmarks"]
prefix = "extra__bookmarks__"
print(json.dumps({
    "package": hook.package_name,
    "class": hook.hook_class_name,
    "name": hook.hook_name,
    "fields": sorted(f.removeprefix(prefix) for f in manager.connection_form_widgets if f.startswith(prefix)),
    "hidden": sorted(manager.field_behaviours["bookmarks"]["hidden_fields"]),
}))
"""


@pytest.fixture(scope="module")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airflow")


def _run(arguments: list[str], airflow_home: Path) -> str:
    environment = {**os.environ, "AIRFLOW_HOME": str(airflow_home), "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


_KINDS = ("hooks", "operators", "sensors", "triggers")


def _modules_named() -> list[str]:
    info = get_provider_info()
    entries = [entry for kind in _KINDS for entry in info[kind]]
    return [module for entry in entries for module in entry["python-modules"]]


def test_provider_info_holds_to_the_schema_of_airflow() -> None:
    schema = json.loads((files("airflow") / "provider_info.schema.json").read_text())

    jsonschema.validate(get_provider_info(), schema)


def test_every_key_is_one_that_airflow_reads() -> None:
    # Airflow ignores what it doesn't know, snake_case spellings of its own keys among it.
    known = {*json.loads((files("airflow") / "provider_info.schema.json").read_text())["properties"], "versions"}

    # Airflow before 3.2 takes no commands from providers.
    assert get_provider_info().keys() - {"cli"} <= known


def test_package_name_is_that_of_the_distribution() -> None:
    # Airflow compares the two in canonical form; where they differ, every `airflow` command dies.
    info = get_provider_info()

    assert info["package-name"] == distribution(_DISTRIBUTION).metadata["Name"] == _DISTRIBUTION
    assert info["versions"] == [distribution(_DISTRIBUTION).version] == [__version__]


def test_entry_point_leads_to_the_provider_info() -> None:
    (found,) = [e for e in entry_points(group="apache_airflow_provider") if e.dist and e.dist.name == _DISTRIBUTION]

    assert found.load() is get_provider_info


@pytest.mark.parametrize("module", _modules_named())
def test_module_that_the_provider_names_exists(module: str) -> None:
    assert find_spec(module) is not None


def test_every_module_with_something_that_airflow_finds_is_named() -> None:
    from airflow.sdk import BaseOperator
    from airflow.triggers.base import BaseTrigger

    package = Path(str(files("airflow_bookmarks")))
    modules = [
        ".".join((package.name, *path.relative_to(package).with_suffix("").parts))
        for kind in _KINDS
        for path in (package / kind).rglob("*.py")
        if not path.name.startswith("_")
    ]
    present = {
        name
        for name in modules
        for value in vars(import_module(name)).values()
        if isinstance(value, type)
        and value.__module__ == name
        and issubclass(value, (BaseHook, BaseOperator, BaseTrigger))
        if not value.__name__.startswith("_")
    }

    assert present == set(_modules_named())


def test_every_notifier_is_named() -> None:
    from airflow.sdk import BaseNotifier

    named = {name.rpartition(".") for name in get_provider_info()["notifications"]}

    for module, _, name in named:
        assert issubclass(getattr(import_module(module), name), BaseNotifier)
    folder = files("airflow_bookmarks") / "notifications"
    present = {
        value
        for entry in folder.iterdir()
        if entry.name.endswith(".py")
        for value in vars(import_module(f"airflow_bookmarks.notifications.{entry.name.removesuffix('.py')}")).values()
        if isinstance(value, type) and issubclass(value, BaseNotifier) and value is not BaseNotifier
    }
    assert {(value.__module__, ".", value.__name__) for value in present} == named


def test_default_option_is_one_of_the_three() -> None:
    (connection,) = get_provider_info()["connection-types"]

    assert connection["conn-fields"]["default_option"]["schema"]["enum"] == ["enable", "pause", "disable"]


@pytest.mark.seldom
@needs_connection_form
def test_airflow_shows_connection_type_and_hook(airflow_home: Path) -> None:
    shown: dict[str, Any] = json.loads(_run([sys.executable, "-c", _CONNECTION_TYPE], airflow_home).splitlines()[-1])

    assert shown == {
        "package": _DISTRIBUTION,
        "class": "airflow_bookmarks.hooks.bookmark.BookmarkHook",
        "name": "Bookmarks",
        "fields": [
            "aws_conn_id",
            "default_option",
            "endpoint",
            "hide_state",
            "names",
            "namespace",
            "region",
            "state_uri",
            "store",
        ],
        "hidden": ["host", "login", "password", "port", "schema"],
    }


@pytest.mark.seldom
def test_airflow_lists_the_provider(airflow_home: Path) -> None:
    command = str(Path(sys.executable).with_name("airflow"))

    listed = json.loads(_run([command, "providers", "list", "--output", "json"], airflow_home))

    (entry,) = [provider for provider in listed if provider["package_name"] == _DISTRIBUTION]
    assert entry["version"] == __version__


@pytest.mark.seldom
def test_airflow_command_loads_nothing_heavy(airflow_home: Path) -> None:
    printed = _run([sys.executable, "-c", _VERSION_COMMAND.format(heavy=_HEAVY)], airflow_home)

    assert printed.splitlines()[-1] == "loaded []"
