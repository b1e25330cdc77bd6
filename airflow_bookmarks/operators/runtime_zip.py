"""Build the runtime zip for `--py-files`: what the Spark driver needs of this package, without the Airflow parts."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.version import __version__

PACKAGES = ("core", "databases", "store", "files", "sources", "sinks", "lifecycle", "spark", "glue")

_PACKAGE = Path(__file__).parents[1]
_GLUE_PATH = _PACKAGE / "glue" / "path"
_AT_ROOT = ("__init__.py", "own_kind.py", "version.py", "py.typed")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip can hold; a real one would change the bytes


class RuntimeZipError(BookmarkError):
    """Raised when the zip of the runtime has no safe place on this machine."""


def runtime_zip(folder: Path | None = None) -> Path:
    """Return the path of the zip with the runtime, writing it first if it is not there.

    Its name holds the version and a hash of its content; the same content gives the same bytes. It appears at once,
    so that tasks that start together may share the folder.

    Args:
        folder: where to keep it; default: one folder per user below the temporary files.

    Raises:
        RuntimeZipError: the default folder is somebody else's.
    """
    return _written(f"airflow_bookmarks-{__version__}", _content(_runtime_files()), folder)


def glue_zip(folder: Path | None = None) -> Path:
    """Return the path of the zip with the runtime and, at its root, what scripts for AWS Glue import.

    It is another zip than `runtime_zip`, since on a path before the real `awsglue` it hides that; see there for the
    rest.
    """
    names = {path.relative_to(_GLUE_PATH).as_posix(): path for path in _GLUE_PATH.rglob("*.py")}
    # Packages without an __init__, which leave room for a project's own, are found in a zip by their folders alone.
    folders = {f"{folder}/": None for name in names for folder in PurePosixPath(name).parents if folder.name}
    files = {**_runtime_files(), **names, **folders}
    return _written(f"airflow_bookmarks_glue-{__version__}", _content(files), folder)


def _written(name: str, content: bytes, folder: Path | None) -> Path:
    digest = hashlib.sha256(content).hexdigest()
    path = (_private_folder() if folder is None else folder) / f"{name}-{digest[:16]}.zip"
    # The bytes are compared, and not only the name: what is shipped is code, and a file cut short has a right name.
    if not path.exists() or path.read_bytes() != content:
        beside = path.with_name(f"{path.name}.{os.getpid()}.part")
        beside.write_bytes(content)
        os.replace(beside, path)
    return path


def _content(files: Mapping[str, Path | None]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if path is None else 0o644) << 16
            archive.writestr(entry, b"" if path is None else path.read_bytes())
    return buffer.getvalue()


def _runtime_files() -> dict[str, Path]:
    """Return the files of the runtime by their names in the zip."""
    inside = [path for package in PACKAGES for path in (_PACKAGE / package).rglob("*.py")]
    # Commands are for workers, and names that hide Glue's own stand in a zip of their own.
    inside = [path for path in inside if path.name != "__main__.py" and not path.is_relative_to(_GLUE_PATH)]
    files = [*(_PACKAGE / name for name in _AT_ROOT), *inside]
    return {f"{_PACKAGE.name}/{path.relative_to(_PACKAGE).as_posix()}": path for path in files}


def _private_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"airflow-bookmarks-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    # Anybody may have made a folder of that name first: code that others can write is not shipped to a cluster.
    if found.st_uid != os.getuid() or found.st_mode & 0o022 or folder.is_symlink():
        raise RuntimeZipError(
            f"the folder {str(folder)!r}, in which the runtime is packed for Spark, belongs to somebody else or can be "
            "written by others. Spark was not started. Remove it, set TMPDIR to another folder, or install the package "
            "in the driver's image and pass ship_runtime=False."
        )
    return folder


if __name__ == "__main__":
    print(runtime_zip())
