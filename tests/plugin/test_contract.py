"""What the plugin takes from Airflow's private API, and what it gives to Airflow."""

from __future__ import annotations

import gzip
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.models.dag import DagModel
from airflow.models.log import Log
from airflow.plugins_manager import AirflowPlugin
from fastapi import FastAPI

from airflow_bookmarks.core import errors
from airflow_bookmarks.plugin import openapi
from airflow_bookmarks.plugin.bundle import BUNDLE, STATIC
from airflow_bookmarks.plugin.exception_handlers import status_of
from airflow_bookmarks.plugin.openapi import openapi_document
from airflow_bookmarks.plugin.plugin import BookmarksPlugin
from airflow_bookmarks.version import __version__
from tests.airflow.compat import needs_bearer_login, needs_pages

from .conftest import Site

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

PACKAGE = Path(__file__).parents[2]


def test_airflow_still_has_what_the_page_asks_it() -> None:
    asked = {
        "is_authorized_dag": {"method", "user", "access_entity", "details"},
        "is_authorized_asset": {"method", "user", "details"},
        "get_authorized_dag_ids": {"user", "method"},
    }
    for name, arguments in asked.items():
        assert arguments <= inspect.signature(getattr(BaseAuthManager, name)).parameters.keys()
    assert DagAccessEntity.RUN.value == "RUN"
    assert hasattr(DagModel, "get_team_name") == ("team_name" in DagDetails.__dataclass_fields__)
    assert "id" in DagDetails.__dataclass_fields__
    assert callable(BaseUser.get_name)
    assert {"event", "owner", "dag_id", "task_id", "extra"} <= {column.name for column in Log.__table__.columns}


MODULES = sorted(p for p in (PACKAGE / "airflow_bookmarks" / "plugin").rglob("*.py") if "www" not in p.parts)


@pytest.mark.parametrize("file", MODULES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_private_api_of_airflow_is_in_one_file(file: Path) -> None:
    text = file.read_text()

    assert ("airflow.api_fastapi" in text) == (file.name == "auth.py")


def test_plugin_gives_one_app_and_imports_it_late() -> None:
    probe = (
        "import sys; import airflow.plugins_manager; before = set(sys.modules);"
        "from airflow_bookmarks.plugin.plugin import BookmarksPlugin; BookmarksPlugin();"
        "new = set(sys.modules) - before;"
        "print([n for n in new if n.split('.')[0] in ('fastapi', 'boto3', 'numpy', 'pyspark', 'sqlalchemy')])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=PACKAGE)
    assert done.stdout.strip().endswith("[]"), done.stdout

    plugin = BookmarksPlugin()
    (entry,) = plugin.fastapi_apps
    assert isinstance(plugin, AirflowPlugin)
    assert (plugin.name, entry["url_prefix"]) == ("bookmarks", "/bookmarks")
    assert isinstance(entry["app"], FastAPI)
    assert plugin.fastapi_apps[0]["app"] is entry["app"]


@needs_pages
def test_airflow_shows_the_page_in_its_navigation_and_as_tabs() -> None:
    from airflow.api_fastapi.core_api.datamodels.plugins import ReactAppResponse

    shown = {app["destination"]: ReactAppResponse.model_validate(app) for app in BookmarksPlugin.react_apps}

    assert shown.keys() == {"nav", "dag", "task"}
    # Airflow drops a second app of the same route, and before 3.3.2 a module that was loaded under the same address.
    assert len({app.url_route for app in shown.values()}) == len({app.bundle_url for app in shown.values()}) == 3
    for app in shown.values():
        assert app.bundle_url.startswith(f"bookmarks{STATIC}/main.js?v={__version__}&")
        for icon in (app.icon, app.icon_dark_mode):
            assert icon is not None
            assert (BUNDLE.parent / Path(icon).name).is_file()
            assert Path(icon).parent == Path(f"bookmarks{STATIC}")


def test_bundle_hands_its_component_to_airflow_and_is_small() -> None:
    bundle = BUNDLE.read_bytes()

    assert b"AirflowPlugin" in bundle
    assert len(gzip.compress(bundle)) < 150_000
    for loaded_by_airflow in (b"react.production", b"@zag-js", b"react-dom-client"):
        assert loaded_by_airflow not in bundle


@needs_bearer_login
def test_document_in_the_docs_is_current() -> None:
    stored = json.loads((PACKAGE / "docs" / "openapi.json").read_text())

    assert stored == json.loads(json.dumps(openapi_document())), (
        "run: python -m airflow_bookmarks.plugin.openapi > docs/openapi.json"
    )


def test_printed_document_is_nothing_but_the_document_where_the_page_is_not_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def document() -> dict[str, str]:
        print("a line of a log")
        return {"openapi": "3.1.0"}

    monkeypatch.setattr(openapi, "openapi_document", document)
    openapi.main()

    assert json.loads(capsys.readouterr().out) == {"openapi": "3.1.0"}


def test_document_says_that_every_route_takes_a_login_and_may_refuse(site: Site) -> None:
    for verbs in openapi_document()["paths"].values():
        for operation in verbs.values():
            assert operation["security"]
            assert {"401", "403", "404", "409", "422", "503"} <= operation["responses"].keys()


def test_every_error_has_a_status() -> None:
    def below(kind: type[errors.BookmarkError]) -> list[type[errors.BookmarkError]]:
        return [kind, *(each for sub in kind.__subclasses__() for each in below(sub))]

    # What only a run can meet is a fault of ours where a page meets it.
    of_runs = {
        "BookmarkError", "MisuseError", "AttemptRefusedError", "NotCommittedError", "PublishError",
        "VersionMismatchError", "ExpectationError", "ManifestError", "OwnerError", "PartitionsFailedError",
        "PartlyLandedError", "SinkUnknownError", "SourceUnknownError", "UnknownRunsError",
    }  # fmt: skip
    ours = [kind for kind in below(errors.BookmarkError) if kind.__module__ == errors.__name__]
    damage = {"StateCorruptError", "OutOfBoundsError"}
    assert {kind.__name__ for kind in ours if status_of(kind.__new__(kind)) == 500} == {*of_runs, *damage}
    assert status_of(errors.StoreAccessError("no")) == 503
    assert status_of(errors.TableMissingError("no")) == 503
    assert status_of(errors.JobUnknownError("no")) == 404


def test_page_of_the_api_names_every_route() -> None:
    root = Path(__file__).parents[2] / "docs"
    described = json.loads((root / "openapi.json").read_text())["paths"]
    prefix = "/api/v1"
    routes = {f"{verb.upper()} {path.removeprefix(prefix)}" for path, verbs in described.items() for verb in verbs}
    page = (root / "reference" / "http_api.md").read_text()

    assert set(re.findall(r"^\| `((?:GET|POST) /\S+)` \|", page, re.MULTILINE)) == routes
