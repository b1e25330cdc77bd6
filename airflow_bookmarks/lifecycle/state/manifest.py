"""Write manifests: each plan of a run as a file in AWS Glue's format, for readers without access to the table.

    <manifest_uri>/partitionlisting/<job>/<run id>/<ctx>.input-files.json

    [{"path": "s3://lake/raw/month=01", "files": ["s3://lake/raw/month=01/a.csv", ...]}, ...]

One object for each folder that holds planned files, each in the order of the plan; an empty plan is an empty array. It
is written after the plan is stored and before the first byte is read. It is a copy for others: no run reads it.

The folder has the run id alone, so an execution that makes several runs adds their part to the name, from the second
one on: `<ctx>@run-<number>.input-files.json`, or `<ctx>@batch-<n>.input-files.json` where runs have no number. (The
name of a context may hold dots, and no "@".) A retry of a run that did not commit plans anew, and its manifest takes
the place of the former one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_bookmarks.core.errors import ManifestError, OptionError, SourceError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.files.filesystem import store_of
from airflow_bookmarks.files.opener import open_filesystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.files.filesystem import FileSystem

log = logging.getLogger(__name__)

_FOLDER = "partitionlisting"
_SAFE = "=@,+"
_LONGEST = 200  # of one part of the path, in bytes; a file system takes 255
_HALF_ESCAPE = re.compile("%[0-9A-F]?$")
_IN_MEMORY_BYTES = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class Manifests:
    """The manifests of one execution of a job. Made by `Manifests.of`."""

    files: FileSystem
    folder: str

    @classmethod
    def of(cls, manifest_uri: str, job: str, run_id: str) -> Manifests:
        """Return the manifests of an execution.

        Raises:
            OptionError: `manifest_uri` is empty, relative or a pattern, or on a file system that is not known here.

        Example:
            >>> Manifests.of("/tmp/glue", "flights.clean", "flights/scheduled__2013-01-01T00:00/clean").folder
            '/tmp/glue/partitionlisting/flights.clean/flights%2Fscheduled__2013-01-01T00%3A00%2Fclean'
        """
        files = open_filesystem(manifest_uri)
        return cls(files, f"{files.canonical(manifest_uri)}/{_FOLDER}/{path_part(job)}/{path_part(run_id)}")

    def path(self, ctx: str, part: str | None = None) -> str:
        """Return where the plan of one context is written; see `write`."""
        return f"{self.folder}/{path_part(ctx if part is None else f'{ctx}@{part}')}.input-files.json"

    def write(self, ctx: str, plan: FilePlan, part: str | None = None) -> str:
        """Write down the plan of one context; return the path of the file.

        Args:
            part: what tells this run from the first of its execution, None for that one.

        Raises:
            ManifestError: it can't be written.
        """
        path = self.path(ctx, part)
        try:
            with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as content:
                for piece in _pieces(plan):
                    content.write(piece)
                content.seek(0)
                self.files.write(path, content)
        except (OSError, SourceError) as error:
            raise ManifestError(
                f"the manifest of context {ctx!r} can't be written to {path!r}: {error} Nothing was read, and the "
                "bookmark has not moved. Give this process the right to write there, or leave manifest_uri out."
            ) from error
        log.info("manifest of context %s: %d files, in %s", ctx, len(plan), path)
        return path


class WritesManifests:
    """What any run does with a `manifest_uri`: nothing, until it has one."""

    _manifests: Manifests | None = None

    @property
    def _manifest_part(self) -> str | None:
        """What tells this run from the first one of its execution; None for the first."""
        raise NotImplementedError

    @property
    def manifests(self) -> Manifests | None:
        """Where each plan is written down; None: nowhere."""
        return self._manifests

    def write_manifests(self, manifests: Manifests | None) -> None:
        """Write down each plan from now on."""
        self._manifests = manifests

    def _write_manifest(self, ctx: str, plan: Plan) -> None:
        if self._manifests is None:
            return
        if not isinstance(plan, FilePlan):  # a manifest is a list of names
            log.info("no manifest of context %s: what it reads is counted in %s, not in files", ctx, plan.amount.unit)
        else:
            self._manifests.write(ctx, plan, self._manifest_part)


def path_part(text: str) -> str:
    """Return a text as one part of a path: readable, unique to the text, and never a way out of the folder.

    Letters, digits and `-_.~=@,+` stay; the UTF-8 of all else, and of a dot in front, is percent-encoded. What is
    longer than a file system takes is cut, and ends in a digest of the whole.

    Example:
        >>> path_part("flights/manual__2013-01-01T00:00:00+00:00/clean")
        'flights%2Fmanual__2013-01-01T00%3A00%3A00+00%3A00%2Fclean'
        >>> path_part("..")
        '%2E.'
    """
    encoded = quote(text, safe=_SAFE, errors="surrogatepass")
    if encoded.startswith("."):
        encoded = f"%2E{encoded[1:]}"
    if len(encoded) <= _LONGEST:
        return encoded
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    # A "!" occurs nowhere else, so no text has the name of another that was cut.
    return f"{_HALF_ESCAPE.sub('', encoded[: _LONGEST - len(digest) - 1])}!{digest}"


def check_manifest_uri(manifest_uri: str) -> str:
    """Return a `manifest_uri` if manifests can lie there.

    Raises:
        OptionError: it is empty, relative or a pattern, holds credentials, or has a scheme that is not known here.
    """
    if not manifest_uri.strip() or _may_hold_credentials(manifest_uri):
        # The message does not repeat the text, which holds what may be a password.
        raise OptionError(
            "manifest_uri is empty, or holds a user or password. Nothing was read or changed. Give, for example, "
            "s3://bucket/prefix; credentials come from the environment, the machine's role or the Spark conf."
        )
    open_filesystem(manifest_uri).canonical(manifest_uri)
    return manifest_uri


def _may_hold_credentials(uri: str) -> bool:
    before, sign, _ = uri.partition("://")[2].partition("/")[0].rpartition("@")
    is_container = store_of(uri) == "abfss" and ":" not in before  # abfss://container@account.dfs.core.windows.net
    return bool(sign) and not is_container


def _pieces(plan: FilePlan) -> Iterator[bytes]:
    folders: dict[str, list[str]] = {}
    for path in plan.files.paths:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    yield b"["
    for number, (folder, paths) in enumerate(folders.items()):
        entry = {"path": _uri(folder), "files": [_uri(path) for path in paths]}
        yield f"{',' if number else ''}\n{json.dumps(entry, ensure_ascii=False)}".encode()
    yield b"\n]\n" if folders else b"]\n"


def _uri(path: str) -> str:
    """Return a canonical path as Glue, Athena and the AWS tools name it."""
    if path.startswith("s3a://"):
        return f"s3://{path.removeprefix('s3a://')}"
    return f"file://{path}" if path.startswith("/") else path
