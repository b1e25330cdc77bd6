"""Territory: decide by path alone which files a job may move, delete or sweep.

State names these files, and every driver of the namespace can write state. So each path in state is compared with what
this package itself makes, before the first file is touched:

    <target>/.../run-<number>.<fence>-<name>        published by a run: moved there, deleted by its replay or a clean
    <target>/.../<visible name>                     deleted by an overwrite, as listed at its commit
    <base>/<namespace>/<job>/<number>.<fence>/      staged by a run; <base> is <target>/_bookmarks, or staging= of it
    <base>/<namespace>/<job>.side/<ulid>/           staged by a pause or disable run

Paths are canonical, and compared as text: scheme and authority are part of it. Links of local files are not known here;
`sinks.files.changes` follows them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OutOfBoundsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run

STAGING_FOLDER = "_bookmarks"
SIDE_FOLDER = ".side"  # appended to a staging root: where pause and disable runs stage

_STAGED = re.compile(r"([0-9]+)\.([0-9]+)")
_SIDE = re.compile(r"[0-9A-Z]{26}")
_PUBLISHED = re.compile(r"run-([0-9]+)\.([0-9]+)-.+", re.DOTALL)


def staging_root(target: str, staging: str | None, namespace: str, job: str) -> str:
    """Return the folder in which all runs of a job stage what they write to `target`.

    `_bookmarks` hides it from Spark's reads of the target; the levels below keep it from `load(target + "/*")`.
    """
    base = staging if staging is not None else f"{target}/{STAGING_FOLDER}"
    return f"{base}/{namespace}/{job}"


def is_root(path: str) -> bool:
    """Whether a path is that of a whole file system or bucket.

    Example:
        >>> [is_root(path) for path in ("/", "s3a://lake", "hdfs://nn:8020/", "/lake", "s3a://lake/raw")]
        [True, True, True, False, False]
    """
    _, sign, rest = path.partition("://")
    return "/" not in rest.strip("/") if sign else not path.strip("/")


def parts_below(path: str, folder: str) -> Sequence[str] | None:
    """Return the names from a folder to a path that lies below it; None if it does not, or a name is not plain.

    Example:
        >>> parts_below("/lake/raw/a/b.csv", "/lake/raw"), parts_below("/lake/raw/../b.csv", "/lake/raw")
        (['a', 'b.csv'], None)
        >>> parts_below("/lake/rawer", "/lake/raw"), parts_below("/lake/raw", "/lake/raw")
        (None, None)
    """
    inside = f"{folder.rstrip('/')}/"
    if not _is_absolute(folder) or not path.startswith(inside):
        return None
    parts = path[len(inside) :].split("/")
    if not parts[-1] or any(part in (".", "..") or "\0" in part for part in parts):
        return None
    return parts


def staged_key(folder: str) -> tuple[int, int] | None:
    """Return number and fence of the run whose staging folder has this name; None for any other name.

    Example:
        >>> staged_key("12.15"), staged_key("archive.2")
        ((12, 15), None)
    """
    match = _STAGED.fullmatch(folder)
    return None if match is None else (int(match[1]), int(match[2]))


def published_key(path: str) -> tuple[int, int] | None:
    """Return number and fence of the run by whose publish a file has its name; None for any other file."""
    match = _PUBLISHED.fullmatch(path.rpartition("/")[2])
    return None if match is None else (int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Territory:
    """What belongs to one job of one namespace; `job` is its key, which a rename does not change.

    Each check takes the state item that names a path, for the message, and returns the folder from which on the path
    is the package's own making: below it no link may lead elsewhere.

    Raises:
        OutOfBoundsError: by each check, where the path is none that this package makes.
    """

    namespace: str
    job: str

    def refuse(self, item: str, path: str, why: str, advice: str | None = None) -> OutOfBoundsError:
        """Return the error that says why a path must not be touched; `advice`: what to do if it may be no attack."""
        return OutOfBoundsError(self.job, item, path, why, advice)

    def check_staging_root(self, item: str, root: str) -> str:
        """Check a folder in which runs of the job stage."""
        tail = f"/{self.namespace}/{self.job}"
        base = root.removesuffix(tail)
        if base == root or not _is_plain(base):
            raise self.refuse(item, root, f"a staging folder of this job is <folder>{tail}")
        return base

    def check_staged(self, item: str, folder: str) -> str:
        """Check a folder that one run of the job has staged: `<staging root>/<number>.<fence>`."""
        root, _, name = folder.rpartition("/")
        if root.endswith(SIDE_FOLDER) and _SIDE.fullmatch(name):
            return self.check_staging_root(item, root.removesuffix(SIDE_FOLDER))
        if not _STAGED.fullmatch(name):
            raise self.refuse(item, folder, "a run stages in <staging folder of the job>/<number>.<fence>")
        return self.check_staging_root(item, root)

    def check_target(self, item: str, target: str) -> str:
        """Check the target of an output."""
        if not _is_plain(target) or STAGING_FOLDER in target.split("/"):
            raise self.refuse(item, target, f"a target is an absolute path, outside of any {STAGING_FOLDER!r}")
        return target


@dataclass(frozen=True, slots=True)
class OutputBounds:
    """What the publish of one output of a run may move and delete.

    `place` is the folder in which it was staged, `tokens` are what the names of its published files begin with: number
    and fence of the run, for each of its fences. `replaces_own` says that a delete list holds former files of the same
    run, as that of a replay does; any other one is that of an overwrite.

    Raises:
        OutOfBoundsError: by each check, where a path is none that such a run lists.
    """

    territory: Territory
    item: str
    target: str
    place: str
    tokens: frozenset[str]
    replaces_own: bool = False

    @classmethod
    def of(cls, territory: Territory, run: Run, name: str) -> OutputBounds:
        """Return the bounds of one output of a run item."""
        output: OutputEntry = run.outputs[name]
        tokens = frozenset(f"run-{run.key.number}.{fence}" for fence in (run.key.fence, *run.fences))
        item = f"RUN {run.key}, output {name!r}"
        return cls(territory, item, output.target, output.place, tokens, run.revision > 0)

    def check_move(self, source: str, target: str) -> tuple[str, str]:
        """Check where a staged file lies and what it becomes; return the bounds of each."""
        base = self.check_place()
        if parts_below(source, self.place) is None:
            raise self.territory.refuse(self.item, source, f"it does not lie in {self.place!r}, where the run staged")
        self.check_own(target)
        return base, self.target

    def check_delete(self, path: str) -> str:
        """Check a file that the publish deletes."""
        if self.replaces_own:
            return self.check_own(path)
        if is_root(self.target):
            why = f"the target {self.target!r} is a whole file system or bucket, of which no run deletes anything"
            raise self.territory.refuse(self.item, path, why, "Overwrite a folder in it.")
        return self.check_replaced(path)

    def check_replaced(self, path: str) -> str:
        """Check a file that a publish has deleted, or is to delete."""
        self._check_visible(path)
        return self.target

    def check_own(self, path: str) -> str:
        """Check a file that the run has published."""
        self._check_visible(path)
        name = path.rpartition("/")[2]
        if not any(name.startswith(f"{token}-") for token in self.tokens):
            raise self.territory.refuse(self.item, path, "its name is not that of a file of this run")
        return self.target

    def check_place(self) -> str:
        """Check that the run staged where this package lets it stage; return what that lies below."""
        folder = self.place.rpartition("/")[0]
        base = self.territory.check_staged(self.item, folder)
        name = folder.rpartition("/")[2]
        if self.tokens.isdisjoint([f"run-{name}", f"side-{name}"]):
            raise self.territory.refuse(self.item, self.place, "that is the staging folder of another run")
        return base

    def _check_visible(self, path: str) -> None:
        self.territory.check_target(self.item, self.target)
        parts = parts_below(path, self.target)
        if parts is None:
            raise self.territory.refuse(self.item, path, f"it does not lie below the target {self.target!r}")
        if STAGING_FOLDER in parts:
            raise self.territory.refuse(self.item, path, "what lies there is staged, and no run lists it")


@dataclass(frozen=True, slots=True)
class PurgeBounds:
    """What a script may purge at once, because its call names the folder: files that lie below it, and not staged.

    Raises:
        OutOfBoundsError: by the check, where a path is none of these.
    """

    territory: Territory
    item: str
    folder: str

    def check_folder(self) -> str:
        """Check the folder, before anything in it is listed; return it."""
        if is_root(self.folder):
            why = "it is a whole file system or bucket, of which nothing is purged"
            raise self.territory.refuse(self.item, self.folder, why, "Purge a folder in it.")
        return self.territory.check_target(self.item, self.folder)

    def check_purge(self, path: str) -> str:
        """Check a file that is to go; return what it lies below."""
        parts = parts_below(path, self.check_folder())
        if parts is None:
            raise self.territory.refuse(self.item, path, f"it does not lie below {self.folder!r}")
        if STAGING_FOLDER in parts:
            raise self.territory.refuse(self.item, path, "what lies there is staged, and no purge deletes it")
        return self.folder


@dataclass(frozen=True, slots=True)
class StagingBounds:
    """What a sweep may remove: folders in which runs of the job staged.

    Raises:
        OutOfBoundsError: by each check, where a folder is none of these.
    """

    territory: Territory
    item: str

    def check_folder(self, folder: str) -> str:
        """Check a folder; return what it lies below."""
        return self.territory.check_staged(self.item, folder)


@dataclass(frozen=True, slots=True)
class SourceBounds:
    """What of the files that a run has read may go, once it is published: what lies in a root of its context.

    `archive` is the folder that the script has given for them.

    Raises:
        OutOfBoundsError: by each check, where a path lies elsewhere.
    """

    territory: Territory
    item: str
    roots: frozenset[str]
    archive: str | None = None

    def check_move(self, source: str, target: str) -> None:
        """Check where a file lies, and where it goes."""
        self.check_delete(source)
        if self.archive is None or parts_below(target, self.archive) is None:
            raise self.territory.refuse(self.item, target, f"it does not lie below the archive {self.archive!r}")

    def check_delete(self, path: str) -> None:
        """Check a file that is to go."""
        above = path
        while above:
            if above in self.roots and (above == path or parts_below(path, above) is not None):
                return
            above = above.rpartition("/")[0]
        if "/" in self.roots and parts_below(path, "/") is not None:
            return
        raise self.territory.refuse(self.item, path, "it lies below no root of its context")


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or "://" in path


def _is_plain(path: str) -> bool:
    """Whether a folder is absolute, in its canonical spelling, and named without going up again."""
    is_canonical = _is_absolute(path) and not path.startswith("file:")
    return is_canonical and not any(part in (".", "..") or "\0" in part for part in path.split("/"))
