"""Files in HDFS, over the REST API that each of its name nodes has (WebHDFS): no Java and no native library."""

from __future__ import annotations

import importlib
import logging
import os
import posixpath
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.filesystem import FileSystemError
from airflow_bookmarks.files.hadoop.filesystem import HadoopFileSystem, HadoopPath
from airflow_bookmarks.files.hadoop.hdfs_settings import Address, HdfsSettings, without_default_port
from airflow_bookmarks.files.permission import present_permission

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

log = logging.getLogger(__name__)

_CONNECT_LIMIT_S, _ANSWER_LIMIT_S = 10, 120
_GONE = 404
_BYTES = {"content-type": "application/octet-stream"}
_STANDBY = "state standby"  # in the answer of a name node that is not the active one

_T = TypeVar("_T")


class HdfsFileSystem(HadoopFileSystem):
    """Files in HDFS: listed folder by folder, moved by one rename.

    `hdfs://names:8020/folder` and `hdfs://names/folder` are one path, and so is `hdfs:///folder` where Hadoop's
    configuration names the default file system. In `webhdfs://host:port/folder` the address is that of HTTP itself.

    Args:
        settings: how it is reached; None: as Hadoop's configuration says.
        scheme: "hdfs", "webhdfs", or "swebhdfs" (the same over TLS).
    """

    protocol = "webhdfs"
    package = "'airflow-provider-bookmarks[hadoop]'"

    def __init__(self, settings: HdfsSettings | None = None, scheme: str = "hdfs") -> None:
        self.schemes = (scheme,)  # type: ignore[misc]  # their authorities differ: none is another spelling of another
        self.example = f"{scheme}://name-node/folder"  # type: ignore[misc]
        self._settings = settings or HdfsSettings.of_environment()
        self._active: dict[str, int] = {}
        super().__init__(scheme)

    # ---- how it is reached

    def authority(self, text: str, path: str) -> str:
        """Return the name node, without the port that is Hadoop's own."""
        if "@" in text:
            raise OptionError(
                f"a path of {self.schemes[0]}:// has a user before the name node {text.rpartition('@')[2]!r}. Nothing "
                "was read or changed. Give the user by HADOOP_USER_NAME or spark.bookmarks.hdfs.user."
            )
        if self.schemes[0] != "hdfs":
            if text:
                return text
        elif text or self._settings.default_authority:
            return without_default_port(text or self._settings.default_authority or "")
        raise OptionError(
            f"{path!r} names no name node, and Hadoop's configuration (fs.defaultFS in HADOOP_CONF_DIR) none that it "
            f"could mean. Nothing was read or changed. Write it as {self.example}."
        )

    def inner(self, at: HadoopPath) -> str:
        """Return the path inside of HDFS."""
        return at.path

    def options(self, authority: str) -> Mapping[str, Any]:
        """Return how the first name node is reached."""
        return self._options(self._addresses(authority)[0])

    def _options(self, address: Address) -> dict[str, Any]:
        who = {"kerberos": True} if self._settings.is_kerberos else {"user": self._settings.user}
        return {"host": address.host, "port": address.port, "use_https": address.is_secure, **who}

    def _addresses(self, authority: str) -> tuple[Address, ...]:
        if self.schemes[0] == "hdfs":
            return self._settings.addresses(authority)
        return (Address.of(authority, is_secure=self.schemes[0] == "swebhdfs"),)

    def _ask(self, at: HadoopPath, request: Callable[[AbstractFileSystem], _T]) -> _T:
        """Make one request of the active name node: first the last active one, then the others."""
        addresses = self._addresses(at.authority)
        first = self._active.get(at.authority, 0)
        for turn in range(len(addresses)):
            number = (first + turn) % len(addresses)
            try:
                answer = request(self._patient(addresses[number]))
            except (ConnectionError, OSError, RuntimeError) as error:
                if turn == len(addresses) - 1 or not _is_for_another(error):
                    raise
                log.info("bookmark: %s is not the active name node (%s): asking another", addresses[number], error)
            else:
                self._active[at.authority] = number
                return answer
        raise FileSystemError(f"no name node of {at} is known. Nothing was read or changed.")

    def _patient(self, address: Address) -> AbstractFileSystem:
        """Return this thread's connection to a name node, with a timeout."""
        name = f"{address.host}:{address.port}"
        is_new = name not in self._connections.__dict__
        fs = self._connection(name, self._options(address))
        if is_new:
            _limit(fs.session)
        return fs

    # ---- what is known of files

    def entries(self, at: HadoopPath) -> Sequence[Mapping[str, Any]]:
        """Return what lies directly in a folder, by one request for each 1,000; fsspec asks for all of them at once."""
        found: list[Mapping[str, Any]] = []
        after = ""
        while True:
            told = self._page(at, after)
            page = told["partialListing"]["FileStatuses"]["FileStatus"]
            found.extend(_info(at, status) for status in page)
            if not page or not told["remainingEntries"]:
                return found
            after = page[-1]["pathSuffix"]
            # The name node decodes this name once too often: it would go on after "a b" and not "a%20b".
            if not after.isascii() or "%" in after or "+" in after:
                return [_info(at, status) for status in self._all_at_once(at)]

    def _all_at_once(self, at: HadoopPath) -> Sequence[Mapping[str, Any]]:
        answer = self._ask(at, lambda fs: fs._call("LISTSTATUS", path=at.path))
        statuses: Sequence[Mapping[str, Any]] = answer.json()["FileStatuses"]["FileStatus"]
        return statuses

    def _page(self, at: HadoopPath, after: str) -> Mapping[str, Any]:
        answer = self._ask(at, lambda fs: fs._call("LISTSTATUS_BATCH", path=at.path, startAfter=after))
        listing: Mapping[str, Any] = answer.json()["DirectoryListing"]
        return listing

    def time_ms(self, info: Mapping[str, Any]) -> int:
        """Return HDFS's own time of a file's last change."""
        return int(info["modificationTime"])

    def etag(self, info: Mapping[str, Any]) -> str | None:
        """HDFS has none."""
        return None

    # ---- reading

    def content(self, at: HadoopPath) -> Any:
        """Begin to read a file, by one request for all of it: fsspec's own takes an error for what the file holds."""
        session, there = self._ask(at, lambda fs: _redirected(fs, at, "OPEN", "get"))
        answer = session.get(there, stream=True)
        if answer.status_code == _GONE:
            raise FileNotFoundError(f"{str(at)!r} is gone. Nothing was changed.")
        answer.raise_for_status()
        return answer.raw

    def other_errors(self) -> tuple[type[Exception], ...]:
        """Return what breaks a stream off."""
        return (importlib.import_module("urllib3.exceptions").HTTPError,)

    # ---- changing

    def write(self, path: str, content: IO[bytes]) -> None:
        """Write one file beside its place, then rename it; see `FileSystem.write`."""
        at = self._place(path)
        # The other's name is no part of this one: it may be as long as a name can be.
        part = HadoopPath(
            at.scheme, at.authority, posixpath.join(posixpath.dirname(at.path), f".{uuid.uuid4().hex}.part")
        )
        with self._telling(f"{path!r} can't be written"):
            session, there = self._ask(at, lambda fs: _redirected(fs, part, "CREATE", "put", overwrite="true"))
            try:
                # By one request, to the data node that keeps the first block: HDFS knows when it has all of it.
                session.put(there, data=content, headers=_BYTES).raise_for_status()
                if not self._rename(part, at):
                    raise FileSystemError(
                        f"{path!r} can't be written: {str(part)!r}, which was to get its name, is gone. What was there "
                        "before is there still. Look who removes files in that folder, and run again."
                    )
            except BaseException:  # an interrupt too may leave no part behind
                self._remove_part(part)
                raise

    def _remove_part(self, part: HadoopPath) -> None:
        # No error if it never came to be. If the connection broke, it may do so yet: then it stays hidden.
        try:
            self._ask(part, lambda fs: fs.rm_file(part.path))
        except self._errors as error:  # report what ended the write, not this
            log.warning("bookmark: %s, which was not written whole, is left: remove it (%s)", part, error)

    def move(self, source: str, target: str) -> bool:
        """Move one file by one rename; see `FileSystem.move`."""
        here, there = self._place(source), self._place(target)
        if here.authority != there.authority:
            return super().move(source, target)
        with self._telling(f"{source!r} can't be moved to {target!r}"):
            try:
                return self._rename(here, there)
            except FileNotFoundError:  # the source, or the folder of the target
                if self._stat(source) is None:
                    return False
            above = posixpath.dirname(there.path)
            self._ask(there, lambda fs: fs.makedirs(above, exist_ok=True))
            try:
                return self._rename(here, there)
            except FileNotFoundError:
                return False  # another publisher was faster

    def _rename(self, here: HadoopPath, there: HadoopPath) -> bool:
        # Of a plain rename (`mv`) HDFS answers false without a reason, and fsspec does not hand that on. This one is as
        # atomic, tells what is missing, and replaces: so it finishes a move whose answer got lost.
        answer = self._ask(
            here,
            lambda fs: fs._call("RENAME", "put", here.path, destination=there.path, renameoptions="OVERWRITE"),
        )
        if answer.content and answer.json().get("boolean") is False:  # a gateway that knows the plain one alone
            if self._stat(str(here)) is None:
                return False
            raise FileSystemError(
                f"{str(here)!r} can't be moved to {str(there)!r}: HDFS refuses to rename it, and does not say why. It "
                "was left where it is. Look whether the target is there already, and who may write into its folder."
            )
        return True

    def delete(self, path: str) -> bool:
        """Delete one file; see `FileSystem.delete`."""
        at = self._place(path)
        with self._telling(f"{path!r} can't be deleted"):
            answer = self._ask(at, lambda fs: fs._call("DELETE", "delete", at.path, recursive="false"))
        return bool(answer.json()["boolean"])

    def remove(self, root: str) -> None:
        """Remove a folder by one request; see `FileSystem.remove`."""
        at = self._place(root)
        with self._telling(f"{root!r} can't be removed"):
            self._ask(at, lambda fs: fs.rm(at.path, recursive=True))


@lru_cache(maxsize=16)
def _opened(settings: HdfsSettings, scheme: str, process: int) -> HdfsFileSystem:
    return HdfsFileSystem(settings, scheme)


def open_hdfs(settings: HdfsSettings | None, scheme: str) -> HdfsFileSystem:
    """Return the HDFS of these settings: the same one each time, with its connections."""
    return _opened(settings or HdfsSettings.of_environment(), scheme, os.getpid())


def _info(at: HadoopPath, status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return of an entry what is asked for: of a million of them the rest would be a lot."""
    return {
        "name": posixpath.join(at.path, status["pathSuffix"]),
        "type": status["type"].lower(),
        "size": status["length"],
        "modificationTime": status["modificationTime"],
    }


def _redirected(fs: AbstractFileSystem, at: HadoopPath, op: str, method: str, **arguments: str) -> tuple[Any, str]:
    """Ask where the content of a file is given or taken; return by which session, and the URL.

    The name node spells the path of that URL in its own way: letters and their accents as one character. HDFS takes
    both for two names, so the path stays as it is.
    """
    answer = fs._call(op, method, at.path, redirect=False, **arguments)
    told = urlsplit(fs._apply_proxy(answer.headers["Location"]))
    permission = present_permission()
    if permission is not None:
        permission.check_host(told.geturl())
    return fs.session, urlunsplit(told._replace(path=f"/webhdfs/v1{quote(at.path)}"))


def _is_for_another(error: Exception) -> bool:
    """Whether a name node is not there, or not the active one: then another one may answer."""
    from requests.exceptions import ConnectionError as Unreachable
    from requests.exceptions import Timeout

    return isinstance(error, (Unreachable, Timeout, ConnectionError)) or _STANDBY in str(error)


def _limit(session: Any) -> None:
    """Give each request of a session a limit of time, which fsspec gives none, and let it follow no redirect.

    Only where content is given or taken does the protocol send to another server; `_redirected` asks for its address.
    """
    from requests.adapters import HTTPAdapter
    from requests.exceptions import TooManyRedirects

    class Patient(HTTPAdapter):
        def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
            kwargs["timeout"] = kwargs.get("timeout") or (_CONNECT_LIMIT_S, _ANSWER_LIMIT_S)
            return super().send(request, *args, **kwargs)

    def refuse(answer: Any, request: Any, *, yield_requests: bool = False, **kwargs: Any) -> Iterator[Any]:
        if not yield_requests and session.get_redirect_target(answer):
            raise TooManyRedirects(f"{request.url} sends to another server, which is not followed", response=answer)
        return iter(())

    session.resolve_redirects = refuse
    for prefix in ("http://", "https://"):
        session.mount(prefix, Patient())
