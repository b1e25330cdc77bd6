"""State that names files of others: nothing of theirs is moved, deleted or swept, and the error names item and path."""

from __future__ import annotations

import ast
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import airflow_bookmarks
from airflow_bookmarks.core.errors import OutOfBoundsError
from airflow_bookmarks.core.files.file_list import encode_moves, encode_paths
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.maintenance.doctor import examine, repair
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.finish import finish
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.clean import CleanList
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Key, Update
from tests.lifecycle.shop import Shop, short_lease
from tests.syntax import parsed

WHY: dict[str, Any] = {"reason": "hostile", "who": "mallory"}


@pytest.fixture
def victim(shop: Shop) -> Path:
    """Return a folder of somebody else, with files that look like those of runs among them."""
    folder = shop.root / "victim"
    for name in ("precious.txt", "1.1/data.txt", "run-1.1-part-0.txt", "_bookmarks/test/other/1.1/out/part-0.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("precious\n")
    return folder


@pytest.fixture(autouse=True)
def nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no fault in what is tested reach this machine: outside of the test's folder nothing is ever changed."""
    kept = f"{os.path.realpath(tmp_path)}/"

    def only_here(method: Callable[..., Any]) -> Callable[..., Any]:
        def checked(files: Any, *paths: str) -> Any:
            assert all(os.path.realpath(path).startswith(kept) for path in paths), f"would have changed {paths}"
            return method(files, *paths)

        return checked

    for name in ("move", "delete", "remove"):
        monkeypatch.setattr(LocalFileSystem, name, only_here(getattr(LocalFileSystem, name)))
        monkeypatch.setattr(S3FileSystem, name, lambda files, *paths: pytest.fail(f"would have changed {paths}"))


@pytest.fixture
def untouched(victim: Path) -> Iterator[None]:
    """Make sure at the end that all of the victim's files are there."""
    before = contents(victim)
    yield
    assert contents(victim) == before


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def head_says(shop: Shop, job: str = "copy", **attributes: Any) -> None:
    shop.store.table.transact([Update(shop.store.keys(job).head, set=attributes)])


def run_keys(shop: Shop, job: str = "copy") -> list[Key]:
    partition = shop.store.keys(job).partition
    return [key for key, _ in shop.store.table.query(partition, prefix=item.RUN_PREFIX)]


def output_says(shop: Shop, job: str = "copy", **changes: Any) -> None:
    """Change attributes of the output of the last run."""
    key = run_keys(shop, job)[-1]
    stored: Any = shop.store.table.get([key])[key]["output:out"]
    shop.store.table.transact([Update(key, set={"output:out": {**stored, **changes}})])


def payload(shop: Shop, body: bytes) -> Attributes:
    return item.payload_value(shop.store.blobs.payload(body))


def dies_at(shop: Shop, point: Failpoint, mode: Mode = Mode.APPEND) -> None:
    """Let a run of "copy" die at a point of the protocol."""

    def at(reached: Failpoint) -> None:
        if reached is point:
            raise InterruptedError

    dying = replace(shop, environment=replace(short_lease(), at=at), mode=mode)
    run = dying.begin(run_id="dying")
    dying.copy(run)
    with pytest.raises(InterruptedError):
        run.commit()


FOREIGN_ROOTS: dict[str, Callable[[Path], str]] = {
    "folder of another": str,
    "way up": lambda victim: f"{victim}/x/../test/copy/../../test/copy",
    "way up at the end": lambda victim: f"{victim}/_bookmarks/test/copy/../../..",
    "other job": lambda victim: f"{victim}/_bookmarks/test/other",
    "job of a longer name": lambda victim: f"{victim}/_bookmarks/test/hardcopy",
    "other namespace": lambda victim: f"{victim}/_bookmarks/prod/copy",
    "namespace of a longer name": lambda victim: f"{victim}/_bookmarks/mytest/copy",
    "run of this job": lambda victim: f"{victim}/_bookmarks/test/copy/1.1",
    "side runs": lambda victim: f"{victim}/_bookmarks/test/copy.side",
}


# ---- HEAD.staging


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("root", FOREIGN_ROOTS.values(), ids=FOREIGN_ROOTS.keys())
def test_begin_sweeps_no_folder_that_is_not_the_jobs_staging(
    shop: Shop, victim: Path, root: Callable[[Path], str]
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    own = shop.store.head("copy").staging[0]
    left = Path(own) / "1.1" / "out" / "left"
    left.parent.mkdir(parents=True)
    left.touch()
    head_says(shop, staging=[own, root(victim)])
    with pytest.raises(OutOfBoundsError) as refused:
        shop.begin()
    assert (refused.value.item, refused.value.path) == ("HEAD, staging", root(victim))
    assert "Nothing was moved, deleted or swept" in str(refused.value)
    assert left.exists()  # not even what is its own: the list is checked whole
    assert shop.store.head("copy").lease is None


@pytest.mark.usefixtures("untouched")
def test_staging_folder_that_is_a_link_to_that_of_another_job_is_not_swept(shop: Shop, victim: Path) -> None:
    shop.run()
    own = shop.root / "elsewhere" / "test" / "copy"
    own.parent.mkdir(parents=True)
    own.symlink_to(victim)
    head_says(shop, staging=[str(own)])
    with pytest.raises(OutOfBoundsError, match="a link leads from there"):
        shop.begin()


def test_root_below_a_link_is_the_jobs_own(shop: Shop) -> None:
    (shop.root / "disk").mkdir()
    (shop.root / "copy").symlink_to(shop.root / "disk")
    shop.put("a.txt", "a")
    shop.run()
    shop.run()
    assert shop.target_lines() == {"a": 1}
    assert shop.staged_files() == []


@pytest.mark.usefixtures("untouched")
def test_worker_that_publishes_for_a_dead_driver_sweeps_nothing_of_others(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    dies_at(shop, Failpoint.COMMITTED)
    head_says(shop, staging=[str(victim)])
    with pytest.raises(OutOfBoundsError):
        finish(shop.store, "copy", shop.identity("dying", 1), RunEnvironment())
    assert shop.target_lines() == {}  # nor is anything published by halves


@pytest.mark.usefixtures("untouched")
def test_collection_removes_no_side_folders_of_others(shop: Shop, victim: Path) -> None:
    ulid = victim / "_bookmarks" / "prod" / "copy.side" / ("0" * 26)
    ulid.mkdir(parents=True)
    shop.run()
    head_says(shop, staging=[f"{victim}/_bookmarks/prod/copy"])
    collect(shop.store)
    assert ulid.exists()


# ---- HEAD.publishing: what an open run lists


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "names",
    [
        lambda victim, own: {"source": str(victim / "precious.txt")},
        lambda victim, own: {"source": f"{own}/../../../../../../victim/precious.txt"},
        lambda victim, own: {"target": str(victim / "run-1.1-new.txt")},
        lambda victim, own: {"target": f"{own.parents[4]}/../victim/precious.txt"},
        lambda victim, own: {"target": str(own.parents[4] / "part-0.txt")},  # not by the name of the run
        lambda victim, own: {"target": str(own.parents[4] / "run-7.7-part-0.txt")},
    ],
)
def test_publish_moves_nothing_that_the_run_has_not_staged(
    shop: Shop, victim: Path, names: Callable[[Path, Path], dict[str, str]]
) -> None:
    shop.put("a.txt", "a")
    dies_at(shop, Failpoint.COMMITTED)
    run = next(iter(shop.store.runs("copy")))
    place = Path(run.outputs["out"].place)
    staged = next(path for path in place.rglob("*") if path.is_file())
    good = (str(staged), f"{shop.root}/copy/run-{run.key}-{staged.name}")
    bad = names(victim, place)
    moves = [good, (bad.get("source", str(staged)), bad.get("target", f"{shop.root}/copy/run-{run.key}-x"))]
    output_says(shop, publish=payload(shop, encode_moves(moves)))
    with pytest.raises(OutOfBoundsError, match=r"RUN 1\.1, output 'out'"):
        shop.begin()
    assert shop.target_lines() == {}
    assert staged.exists()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "place",
    [
        lambda victim: str(victim),
        lambda victim: f"{victim}/_bookmarks/test/other/1.1/out",
        lambda victim: f"{victim}/_bookmarks/prod/copy/1.1/out",
        lambda victim: f"{victim}/_bookmarks/test/copy/7.7/out",
    ],
)
def test_publish_believes_no_staging_place_that_is_not_the_runs(
    shop: Shop, victim: Path, place: Callable[[Path], str]
) -> None:
    shop.put("a.txt", "a")
    dies_at(shop, Failpoint.COMMITTED)
    moves = [(f"{place(victim)}/part-0.txt", f"{shop.root}/copy/run-1.1-part-0.txt")]
    output_says(shop, place=place(victim), publish=payload(shop, encode_moves(moves)))
    with pytest.raises(OutOfBoundsError, match=r"RUN 1\.1"):
        shop.begin()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "path",
    [
        lambda shop, victim: str(victim / "precious.txt"),
        lambda shop, victim: str(victim),
        lambda shop, victim: f"{shop.root}/copy/../victim/precious.txt",
        lambda shop, victim: f"{shop.root}/copy/_bookmarks/test/other/1.1/out/part",
        lambda shop, victim: f"{shop.root}/copy",
        lambda shop, victim: f"file://{victim}/precious.txt",
    ],
)
def test_overwrite_deletes_nothing_outside_of_its_target(
    shop: Shop, victim: Path, path: Callable[[Shop, Path], str]
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    dies_at(shop, Failpoint.COMMITTED, Mode.OVERWRITE)
    former = [str(path) for path in (shop.root / "copy").rglob("run-1*")]
    output_says(shop, delete=payload(shop, encode_paths([*former, path(shop, victim)])))
    with pytest.raises(OutOfBoundsError, match=r"RUN 2\.2"):
        shop.begin()
    assert all(Path(path).exists() for path in former)


@pytest.mark.usefixtures("untouched")
def test_overwrite_follows_no_link_out_of_its_target(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    dies_at(shop, Failpoint.COMMITTED, Mode.OVERWRITE)
    (shop.root / "copy" / "way").symlink_to(victim)
    output_says(shop, delete=payload(shop, encode_paths([f"{shop.root}/copy/way/precious.txt"])))
    with pytest.raises(OutOfBoundsError, match="a link leads"):
        shop.begin()


@pytest.mark.usefixtures("untouched")
def test_output_that_a_link_would_lead_away_is_refused_before_its_commit(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    (shop.root / "copy" / "file=b").symlink_to(victim)
    run = shop.begin()
    shop.copy(run)
    with pytest.raises(OutOfBoundsError, match="a link leads"):
        run.commit()
    assert shop.store.head("copy").run_number == 1


@pytest.mark.usefixtures("untouched")
def test_due_replay_deletes_nothing_but_files_of_its_run(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    others = shop.root / "copy" / "somebody.txt"
    others.write_text("somebody\n")

    def at(reached: Failpoint) -> None:
        if reached is Failpoint.COMMITTED:
            raise InterruptedError

    dying = replace(shop, environment=replace(short_lease(), at=at))
    run = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), dying.environment, 1)
    shop.copy(run)
    with pytest.raises(InterruptedError):
        run.commit()
    output_says(shop, delete=payload(shop, encode_paths([str(others)])))
    with pytest.raises(OutOfBoundsError, match="not that of a file of this run"):
        shop.begin()
    assert others.exists()


# ---- HEAD.cleaning


def head_cleans(shop: Shop, folders: list[str], files: list[str], *, raw: bytes | None = None) -> None:
    body = CleanList(tuple(folders), tuple(files)).encode() if raw is None else raw
    head_says(shop, cleaning=payload(shop, body))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("root", [root for name, root in FOREIGN_ROOTS.items() if name != "run of this job"])
def test_clean_removes_no_folder_that_is_not_the_jobs_staging(
    shop: Shop, victim: Path, root: Callable[[Path], str]
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reset(shop.store, "copy", clean=True, **WHY)
    own = next(path for path in (shop.root / "copy").rglob("run-1*"))
    for folder in (f"{root(victim)}/x", f"{root(victim)}/_bookmarks", root(victim)):
        head_cleans(shop, [folder], [str(own)])
        with pytest.raises(OutOfBoundsError, match="HEAD, cleaning"):
            shop.begin()
    assert own.exists()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "path",
    [
        lambda shop, victim: str(victim / "precious.txt"),
        lambda shop, victim: str(victim / "run-1.1-part-0.txt"),
        lambda shop, victim: f"{shop.root}/copy/../victim/run-1.1-part-0.txt",
        lambda shop, victim: str(victim),
        lambda shop, victim: f"{shop.root}/copy/somebody.txt",
        lambda shop, victim: f"{shop.root}/copy/run-7.7-part-0.txt",
    ],
)
def test_clean_deletes_nothing_but_what_undone_runs_published(
    shop: Shop, victim: Path, path: Callable[[Shop, Path], str]
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    (shop.root / "copy" / "somebody.txt").write_text("somebody\n")
    (shop.root / "copy" / "run-7.7-part-0.txt").write_text("somebody\n")
    reset(shop.store, "copy", clean=True, **WHY)
    before = contents(shop.root / "copy")
    own = next(path for path in (shop.root / "copy").rglob("run-1*"))
    head_cleans(shop, [], [str(own), path(shop, victim)])
    with pytest.raises(OutOfBoundsError, match="HEAD, cleaning"):
        shop.begin()
    assert contents(shop.root / "copy") == before


def test_clean_deletes_nothing_of_runs_that_are_history(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    living = [str(path) for path in (shop.root / "copy").rglob("run-1*")]
    head_cleans(shop, [], living)
    with pytest.raises(OutOfBoundsError, match="no run of this job that is undone"):
        shop.begin()
    assert shop.target_lines() == {"a": 1}


@pytest.mark.usefixtures("untouched")
def test_clean_that_an_undone_run_asks_for_is_refused_before_the_change(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    moves = [("/staged", str(victim / "precious.txt"))]
    output_says(shop, publish=payload(shop, encode_moves(moves)))
    with pytest.raises(OutOfBoundsError, match=r"RUN 1\.1"):
        reset(shop.store, "copy", clean=True, **WHY)
    assert shop.store.head("copy").epoch == 1


@pytest.mark.usefixtures("untouched")
def test_target_of_an_undone_run_is_no_way_to_files_of_others(shop: Shop, victim: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    moves = [("/staged", str(victim / "precious.txt"))]
    output_says(shop, target=str(victim), publish=payload(shop, encode_moves(moves)))
    with pytest.raises(OutOfBoundsError, match="not that of a file of this run"):
        reset(shop.store, "copy", clean=True, **WHY)


# ---- what the doctor says


@pytest.mark.parametrize(
    ("tamper", "where"),
    [
        (lambda shop, victim: head_says(shop, staging=[str(victim)]), "HEAD, staging"),
        (lambda shop, victim: head_cleans(shop, [str(victim)], []), "HEAD, cleaning"),
        (lambda shop, victim: head_cleans(shop, [], [str(victim / "precious.txt")]), "HEAD, cleaning"),
        (
            lambda shop, victim: output_says(
                shop, publish=payload(shop, encode_moves([("/x", str(victim / "precious.txt"))]))
            ),
            "RUN 1.1, output 'out'",
        ),
        (
            lambda shop, victim: output_says(shop, delete=payload(shop, encode_paths([str(victim / "precious.txt")]))),
            "RUN 1.1, output 'out'",
        ),
    ],
)
@pytest.mark.usefixtures("untouched")
def test_doctor_finds_paths_of_others(
    shop: Shop, victim: Path, tamper: Callable[[Shop, Path], None], where: str
) -> None:
    shop.put("a.txt", "a")
    shop.run()
    assert examine(shop.store) == []
    tamper(shop, victim)
    found = [finding for finding in examine(shop.store, with_files=False) if finding.code == "path-foreign"]
    assert [finding.where for finding in found] == [where]
    assert str(victim) in found[0].what


@pytest.mark.usefixtures("untouched")
def test_doctor_repairs_no_folder_of_others(shop: Shop, victim: Path) -> None:
    shop.run()
    head_says(shop, staging=[str(victim)], fence=9)
    found = examine(shop.store)
    assert ("path-foreign", "HEAD, staging") in {(finding.code, finding.where) for finding in found}
    repair(shop.store, found, who="mallory")
    assert shop.run()[1].is_published  # the foreign folder is no more on the list


def test_clean_list_that_is_no_list_of_paths_is_damage(shop: Shop) -> None:
    shop.run()
    raw = zlib.compress(json.dumps({"folders": [5], "files": [None]}).encode())
    head_cleans(shop, [], [], raw=raw)
    with pytest.raises(Exception, match="can't be read"):
        shop.begin()


# ---- there is one way to change files


_OPENERS = {"open_to_change", "open_any_filesystem", "ChangeableFileSystem"}
_CHANGES_OF_OS = {"unlink", "remove", "rename", "replace", "rmdir", "removedirs", "renames", "truncate"}


def test_nothing_but_file_changes_opens_a_file_system_to_change_it() -> None:
    package = Path(airflow_bookmarks.__file__).parent
    opening: set[str] = set()
    removing: set[str] = set()
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = {alias.name for alias in node.names}
                opening |= (
                    {name} if names & {"open_to_change", "open_any_filesystem", "ChangeableFileSystem"} else set()
                )
                removing |= {name} if "shutil" in names else set()
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("os", "shutil")
            ):
                removing |= {name} if node.attr in _CHANGES_OF_OS | {"rmtree", "move"} else set()
    of_files = {name for name in opening if not name.startswith("files/")}
    assert of_files == {"sinks/files/changes.py"}
    assert {
        name for name in removing if name.split("/")[0] in ("lifecycle", "sources", "sinks", "store", "spark", "core")
    } <= {"sinks/files/changes.py"}
