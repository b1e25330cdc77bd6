"""File systems through fsspec keep the promises of `FileSystem`: in memory, and in an HDFS that runs."""

from __future__ import annotations

import getpass
import importlib.util
import io
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request, urlopen

import fsspec
import pytest

from airflow_bookmarks.core.errors import FolderVanishedError, OptionError, SourceMissingError
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.filesystem import FileSystemError
from airflow_bookmarks.files.hadoop.abfs import AbfsFileSystem
from airflow_bookmarks.files.hadoop.filesystem import HadoopFileSystem, HadoopPath
from airflow_bookmarks.files.hadoop.hdfs import HdfsFileSystem
from airflow_bookmarks.files.hadoop.hdfs_settings import Address, HdfsSettings
from airflow_bookmarks.files.opener import open_filesystem, open_one_filesystem
from tests.files.conformance import ODD_NAMES, FileSystemConformance, Ground
from tools.hdfs_cluster import HdfsCluster, hdfs_cluster
from tools.patience import STUCK_S
from tools.servers import free_port

# A group of its own: one HDFS serves all of it.
pytestmark = [pytest.mark.xdist_group("hdfs")]

# HDFS refuses a colon in a name, and keeps none that is longer than 255 bytes.
HDFS_NAMES = [name for name in ODD_NAMES if ":" not in name]


def _seconds(moment: Any) -> float:
    return moment if isinstance(moment, float) else moment.timestamp()  # fsspec's memory tells one or the other


class MemoryFileSystem(HadoopFileSystem):
    """fsspec's own file system in memory: a store that copies, as object stores do."""

    schemes = ("memory",)
    protocol = "memory"
    package = "fsspec"
    example = "memory://test/folder"

    def authority(self, text: str, path: str) -> str:
        if not text:
            raise OptionError(f"{path!r}: Nothing was read or changed")
        return text

    def options(self, authority: str) -> Mapping[str, Any]:
        return {}

    def inner(self, at: HadoopPath) -> str:
        return f"/{at.authority}{at.path}"

    def time_ms(self, info: Mapping[str, Any]) -> int:
        return int(_seconds(info["created"]) * 1000)

    def etag(self, info: Mapping[str, Any]) -> str | None:
        return f"of {info['size']}"


@dataclass(frozen=True)
class MemoryGround(Ground):
    def put(self, name: str, content: bytes = b"a row\n") -> str:
        path = self.path(name)
        with fsspec.filesystem("memory").open(path.removeprefix("memory:/"), "wb") as file:
            file.write(content)
        return path


@dataclass(frozen=True)
class HdfsGround(Ground):
    def put(self, name: str, content: bytes = b"a row\n") -> str:
        path = self.path(name)
        # By our own: what fsspec writes has another name where a letter and its accent are two characters.
        self.files.write(path, io.BytesIO(content))
        return path


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


def settings_of(cluster: HdfsCluster) -> HdfsSettings:
    properties = (("dfs.namenode.http-address", cluster.http), ("fs.defaultFS", f"hdfs://{cluster.authority}"))
    return HdfsSettings(properties)


def hdfs_ground(cluster: HdfsCluster, settings: HdfsSettings) -> HdfsGround:
    """Return an empty folder of HDFS."""
    folder = f"/{uuid.uuid4().hex}"
    request = Request(f"http://{cluster.http}/webhdfs/v1{folder}?op=MKDIRS&user.name={getpass.getuser()}", method="PUT")
    with urlopen(request, timeout=STUCK_S):  # noqa: S310  # of the loopback
        return HdfsGround(HdfsFileSystem(settings), f"hdfs://{cluster.authority}{folder}")


class TestMemory(FileSystemConformance):
    @pytest.fixture
    def ground(self) -> Ground:
        return MemoryGround(MemoryFileSystem(), f"memory://test/{uuid.uuid4().hex}")


@pytest.mark.seldom
class TestHdfs(FileSystemConformance):
    odd_names = HDFS_NAMES

    @pytest.fixture
    def ground(self, hdfs: HdfsCluster) -> Ground:
        return hdfs_ground(hdfs, settings_of(hdfs))


@pytest.fixture
def ground(hdfs: HdfsCluster) -> HdfsGround:
    return hdfs_ground(hdfs, settings_of(hdfs))


# ---- HDFS: listing


def test_pruned_folder_is_not_listed_and_counted(ground: HdfsGround) -> None:
    ground.put_all("year=2012/a.csv", "year=2013/month=01/b.csv", "_tmp/c.csv")
    asked: list[str] = []
    seen: list[int] = []

    def enters(folder: str) -> bool:
        asked.append(folder)
        return folder != "year=2012"

    listed = ground.files.list(ground.root, enters=enters, saw=seen.append)

    assert (listed.files.paths, listed.pruned) == ([ground.path("year=2013/month=01/b.csv")], 1)
    assert sorted(asked) == ["year=2012", "year=2013", "year=2013/month=01"]
    assert sum(seen) == 5  # three folders, then a folder, then a file


@pytest.mark.seldom
def test_names_that_look_encoded_are_listed_once_wherever_an_answer_ends(ground: HdfsGround) -> None:
    names = sorted(["a b", "a%20b", "a%7Ab", "a%7ab", "a+b", "ab", "ac", "ad", "azb", "ä", "é", "日"])
    for first in range(4):  # an answer has three entries here: each of them is the last of one
        ground.put_all(*(f"{first}/{name}" for name in names[first:]))

        paths = ground.files.list(ground.path(str(first))).files.paths

        assert list(paths) == [ground.path(f"{first}/{name}") for name in names[first:]]


def test_file_of_which_only_the_time_is_new_has_another_version(ground: HdfsGround) -> None:
    path = ground.put("a.csv", b"12345")
    (before,) = ground.files.stat([path])

    ground.put("a.csv", b"54321")

    (after,) = ground.files.stat([path])
    assert before is not None
    assert after is not None
    assert (after.size_bytes, after.version != before.version) == (5, True)


# ---- HDFS: moving


def test_move_makes_no_folder_where_the_source_is_gone(ground: HdfsGround) -> None:
    assert not ground.files.move(ground.path("a.csv"), ground.path("x=1/a.csv"))

    assert list(ground.files.folders(ground.root)) == []


def test_write_that_breaks_off_leaves_what_was_there(ground: HdfsGround) -> None:
    ground.put("a.csv", b"whole")

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("the disk it comes from is gone")

    with pytest.raises(FileSystemError, match=r"can't be written: ConnectionError.*the disk it comes from is gone"):
        ground.files.write(ground.path("a.csv"), Broken(b"a part"))

    assert ground.content("a.csv") == b"whole"
    assert ground.names() == ["a.csv"]


def test_clean_up_that_fails_does_not_hide_what_ended_the_write(
    ground: HdfsGround, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: Any) -> None:
        raise ConnectionError("the name node went as well")

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("the disk it comes from is gone")

    monkeypatch.setattr(fsspec.get_filesystem_class("webhdfs"), "rm_file", refuse)

    with pytest.raises(FileSystemError, match="the disk it comes from is gone"):
        ground.files.write(ground.path("a.csv"), Broken(b"a part"))

    assert "which was not written whole, is left: remove it (the name node went as well)" in caplog.text


def test_write_whose_part_is_removed_by_somebody_is_an_error(
    ground: HdfsGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A gateway says so; the name node itself raises FileNotFoundError.
    monkeypatch.setattr(HdfsFileSystem, "_rename", lambda *_: False)

    with pytest.raises(FileSystemError, match=r"can't be written.*is gone"):
        ground.files.write(ground.path("a.csv"), io.BytesIO(b"whole"))


# ---- HDFS: how it is reached


def test_path_without_name_node_means_that_of_the_configuration(
    hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs.conf))
    path = hdfs_ground(hdfs, HdfsSettings.of_environment()).put("a.csv").replace(hdfs.authority, "")

    files = open_filesystem(path)

    assert files.canonical(path) == f"hdfs://{hdfs.authority}{path.removeprefix('hdfs://')}"
    assert files.list(files.canonical(path)).files.sizes.tolist() == [6]


def test_path_without_name_node_is_refused_where_nothing_says_which() -> None:
    with pytest.raises(OptionError, match=r"names no name node.*fs\.defaultFS.*Nothing was read"):
        HdfsFileSystem(HdfsSettings()).canonical("hdfs:///raw")


def test_hadoops_own_port_is_no_other_path() -> None:
    files = HdfsFileSystem(HdfsSettings())

    assert files.canonical("hdfs://names:8020/raw/") == files.canonical("hdfs://names/raw") == "hdfs://names/raw"
    assert files.canonical("hdfs://names:9000/raw") == "hdfs://names:9000/raw"


def test_rest_address_can_be_the_path_itself(hdfs: HdfsCluster) -> None:
    path = hdfs_ground(hdfs, settings_of(hdfs)).put("a.csv").replace(f"hdfs://{hdfs.authority}", "")

    listed = open_filesystem(f"webhdfs://{hdfs.http}/").list(f"webhdfs://{hdfs.http}{path}")

    assert listed.files.paths == [f"webhdfs://{hdfs.http}{path}"]


def test_name_node_that_is_down_is_passed_over_for_another(hdfs: HdfsCluster) -> None:
    down = Address("127.0.0.1", free_port())
    ground = hdfs_ground(hdfs, replace(settings_of(hdfs), http=(down, Address.of(hdfs.http))))

    ground.put("a.csv")

    assert ground.names() == ["a.csv"]


class _Standby(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"RemoteException": {"exception": "StandbyException", "message": STANDBY}}).encode()
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        return


STANDBY = "Operation category READ is not supported in state standby. Visit https://s.apache.org/sbnn-error"


@pytest.fixture
def standby() -> Iterator[Address]:
    """Serve what a name node in standby says."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Standby) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Address("127.0.0.1", server.server_port)
        server.shutdown()
        thread.join()


def test_name_node_in_standby_is_passed_over_for_the_active_one(hdfs: HdfsCluster, standby: Address) -> None:
    ground = hdfs_ground(hdfs, replace(settings_of(hdfs), http=(standby, Address.of(hdfs.http))))

    ground.put("a.csv")

    assert ground.files.move(ground.path("a.csv"), ground.path("x=1/b.csv"))
    assert ground.names() == ["x=1/b.csv"]


def test_nobody_answering_is_told_with_what_to_check() -> None:
    nobody = Address("127.0.0.1", free_port())

    with pytest.raises(FileSystemError, match=r"can't be listed: ConnectionError.*Check that the store is up"):
        HdfsFileSystem(HdfsSettings(http=(nobody,))).list("hdfs://names/raw")


def test_folder_of_somebody_else_is_refused_with_the_reason(hdfs: HdfsCluster) -> None:
    ground = hdfs_ground(hdfs, settings_of(hdfs))
    stranger = HdfsFileSystem(replace(settings_of(hdfs), named_user="stranger"))

    with pytest.raises(FileSystemError, match=r"can't be moved.*Permission denied: user=stranger"):
        stranger.move(ground.put("a.csv"), ground.path("b.csv"))

    assert ground.names() == ["a.csv"]


# ---- Azure and Google, as far as it goes without their packages


class ByDisk(MemoryFileSystem):
    """A store whose files are copied by way of this machine's disk, as Azure's."""

    copy = AbfsFileSystem.copy
    put = AbfsFileSystem.put


def test_publisher_that_sleeps_in_a_copy_by_disk_brings_no_replaced_file_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = MemoryGround(ByDisk(), f"memory://test/{uuid.uuid4().hex}")
    path = ground.put("_bookmarks/a.csv")
    memory: Any = fsspec.get_filesystem_class("memory")
    get_file = memory.get_file

    def sleeps(fs: Any, source: str, kept: str) -> None:
        get_file(fs, source, kept)
        ground.files.delete(path)  # another has moved it, and a later run replaced it

    monkeypatch.setattr(memory, "get_file", sleeps)

    assert not ground.files.move(path, ground.path("a.csv"))
    assert ground.files.stat([ground.path("a.csv")]) == [None]


@pytest.mark.parametrize(
    ("goes", "error"), [("x=1", FolderVanishedError), ("", SourceMissingError)], ids=["a-folder", "the-root"]
)
def test_folder_that_goes_while_it_is_listed_is_not_the_whole_root(goes: str, error: type[Exception]) -> None:
    ground = MemoryGround(MemoryFileSystem(), f"memory://test/{uuid.uuid4().hex}")
    ground.put_all("a.csv", "x=1/b.csv")

    def enters(folder: str) -> bool:
        fsspec.filesystem("memory").rm(ground.path(goes).removeprefix("memory:/").rstrip("/"), recursive=True)
        return True

    with pytest.raises(error, match="went while it was listed"):
        ground.files.list(ground.root, enters=enters)


def test_file_that_is_written_again_in_azure_replaces_the_former(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    memory: Any = fsspec.get_filesystem_class("memory")
    # adlfs replaces nothing that it is not told to; what is in memory replaces in any case.
    monkeypatch.setattr(memory, "put_file", lambda fs, kept, inner, **how: asked.append(how))

    MemoryGround(ByDisk(), "memory://test/x").files.write("memory://test/x/a.csv", io.BytesIO(b"new"))

    assert asked == [{"overwrite": True}]


@pytest.mark.parametrize("opener", ["gs.open_gs()", "abfs.open_abfs('abfss')"])
def test_forked_child_has_connections_of_its_own(opener: str) -> None:
    script = (
        "import os; from airflow_bookmarks.files.hadoop import abfs, gs; gs.GcsFileSystem = lambda: object(); "
        f"abfs.AbfsFileSystem = lambda scheme: object(); mine = {opener}; assert mine is {opener}; child = os.fork(); "
        f"child or os._exit({opener} is mine); assert os.waitpid(child, 0)[1] == 0"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


# ---- what is opened, and what it lacks


@pytest.mark.parametrize(
    ("path", "package"),
    [("gs://lake/raw", "gcsfs"), ("abfss://lake@store.dfs.core.windows.net/raw", "adlfs")],
)
def test_package_that_is_missing_is_named(path: str, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed here")
    with pytest.raises(OptionError, match=f"Nothing was read or changed.*pip install {package}"):
        open_filesystem(path).list(path)


def test_without_fsspec_a_path_of_hdfs_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)

    with pytest.raises(OptionError, match=r"pip install 'airflow-provider-bookmarks\[hadoop\]'"):
        HdfsFileSystem(HdfsSettings()).list("hdfs://names/raw")


def test_kerberos_without_its_package_names_it() -> None:
    if importlib.util.find_spec("requests_kerberos") is not None:
        pytest.skip("requests-kerberos is installed here")
    settings = HdfsSettings((("hadoop.security.authentication", "kerberos"),))

    with pytest.raises(OptionError, match=r"requests_kerberos.*Nothing was read or changed"):
        HdfsFileSystem(settings).list("hdfs://names/raw")


def test_paths_of_other_file_systems_take_nothing_of_fsspec() -> None:
    script = "import sys; from airflow_bookmarks.files.opener import open_filesystem as o; o('/a'); o('s3a://a/b'); "
    script += "from airflow_bookmarks.sources.files import planner; sys.exit('fsspec' in sys.modules)"

    subprocess.run([sys.executable, "-c", script], check=True)


def test_name_nodes_may_be_mixed_and_file_systems_not() -> None:
    assert isinstance(open_one_filesystem(["hdfs://names/raw", "hdfs://others/raw"]), HdfsFileSystem)

    with pytest.raises(OptionError, match="different file systems"):
        open_one_filesystem(["hdfs://names/raw", "s3a://lake/raw"])


def test_settings_of_a_block_are_those_of_all_paths_opened_in_it(ground: HdfsGround, hdfs: HdfsCluster) -> None:
    ground.put("a.csv")
    settings = HdfsSettings.of_spark_conf({"spark.bookmarks.hdfs.http": hdfs.http})
    with reached_by(FileAccess(hdfs=settings)):
        assert open_filesystem(ground.root).list(ground.root).files.paths == [ground.path("a.csv")]
