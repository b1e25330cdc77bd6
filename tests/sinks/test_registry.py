"""Kinds of sink by name: one whose staging could not be found again is refused where it is made known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airflow_bookmarks
from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.registry import GROUP, SINKS, SinkRegistry
from airflow_bookmarks.sinks.staging import StagingRequest
from tests.installed import install, printed
from tests.lifecycle.parcels import Parcels


class Spelled(Parcels):
    """One whose name is given, where a kind has a fixed one."""

    def __init__(self, kind: str) -> None:
        super().__init__(":memory:")
        self.kind = kind  # type: ignore[misc]


def test_lifecycle_and_sources_know_no_kind_of_sink_by_name() -> None:
    package = Path(airflow_bookmarks.__file__).parent
    naming = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"\bFILES_SINK\b|\bFilesSink\b|\.sink ==", path.read_text())
    }
    # A driver gives the sinks of tables, and that of files, its session: there they are made, and nothing is decided.
    assert {name for name in naming if not name.startswith("sinks/")} == {"core/run.py", "spark/opening.py"}


@pytest.mark.parametrize("kind", ["Parcels", "my parcels", "parcels:dw", "päckchen", "", "parcels\n"])
def test_name_that_a_staging_root_could_not_be_found_by_is_refused(kind: str) -> None:
    with pytest.raises(MisuseError, match=r"(?s)Spelled\.kind is .*a-z, 0-9, '_' and '-'.*Give it another name"):
        SINKS.extended(Spelled(kind))


@pytest.mark.parametrize("kind", ["parcels", "dw-2", "my_parcels"])
def test_staging_root_of_a_kind_is_found_by_its_name(kind: str) -> None:
    sinks = SinkRegistry.of(Spelled(kind))
    _, root = sinks.stage(Territory("test", "copy"), RunKey(1, 1), "out", StagingRequest(kind, "dw"))
    assert root == f"{kind}:test/copy"
    assert sinks.of_root("copy", root)[1] == "test/copy"


@pytest.mark.parametrize("root", ["", "//host/test/copy"])
def test_staging_root_that_would_be_taken_for_a_folder_is_refused(root: str) -> None:
    class Rooted(Parcels):
        def stage(
            self, territory: Territory, key: RunKey, output: str, request: StagingRequest
        ) -> tuple[OutputEntry, str | None]:
            return super().stage(territory, key, output, request)[0], root

    sinks = SinkRegistry.of(Rooted(":memory:"))
    with pytest.raises(MisuseError, match=r"Rooted\.stage\(\) returns the staging root .*Nothing was read or written"):
        sinks.stage(Territory("test", "copy"), RunKey(1, 1), "out", StagingRequest(Parcels.kind, "dw"))


def test_installed_sink_of_such_a_name_is_not_known_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "from tests.lifecycle.parcels import Parcels\n"
        "class Installed(Parcels):\n"
        "    kind = 'My.Parcels'\n"
        "    def __init__(self): super().__init__(':memory:')\n"
    )
    install(tmp_path, GROUP, "theirs", **{"My.Parcels": "theirs:Installed"})
    code = (
        "from airflow_bookmarks.sinks.registry import SINKS\n"
        "print(SINKS.find('My.Parcels'), SINKS.why_unknown('My.Parcels'))"
    )
    (said,) = printed(tmp_path, code)
    assert said.startswith("None")
    assert "is made of a-z, 0-9" in said
