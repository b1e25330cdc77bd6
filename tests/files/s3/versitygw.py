"""An S3 server whose objects are files on this disk: versitygw, built by Go at its first use, into the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tools.jars import cache_root
from tools.servers import before_exec, free_port

ACCESS_KEY, SECRET_KEY = "testing", "testing-secret"

_VERSION = "1.8.0"
_MODULE = f"github.com/versity/versitygw/cmd/versitygw@v{_VERSION}"
_BUILD_LIMIT_S = 900
_TRIES = 600


def versitygw() -> Path | None:
    """Return the program, after building it if it is not in the cache yet; None without Go, or where it can't build."""
    program = cache_root().parent / f"versitygw-{_VERSION}" / "versitygw"
    go = shutil.which("go")
    if program.exists() or go is None:
        return program if program.exists() else None
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / "building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the build takes both cores for a minute: other processes wait for its end
        if not program.exists():
            environment = {**os.environ, "GOBIN": str(program.parent)}
            command = [go, "install", _MODULE]
            subprocess.run(command, env=environment, timeout=_BUILD_LIMIT_S, capture_output=True, check=False)
    return program if program.exists() else None


@contextmanager
def versitygw_server(program: Path, folder: Path) -> Iterator[str]:
    """Serve the files below `folder`, whose subfolders are buckets, on the loopback; yield the endpoint."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (folder.parent / "versitygw.log").open("w+b") as log:
        process = subprocess.Popen(
            [program, "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(folder)],
            env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=before_exec(os.getpid(), None),
        )
        try:
            if not any(_answers(url, process) for _ in range(_TRIES)):
                log.seek(0)
                raise RuntimeError(f"versitygw did not answer on {url}\n{log.read()[-4000:].decode()}")
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        return False
    try:
        with urlopen(url, timeout=60):  # noqa: S310  # the URL is our own
            return True
    except HTTPError:
        return True
    except (URLError, ConnectionError, TimeoutError):
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            return False
        return False
