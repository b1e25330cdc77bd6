"""Two environments that differ in one package: Airflow with this provider, and Airflow without it.

Both are virtual environments whose packages are links to those of the environment that this runs in. In one the
provider is left out: its metadata, its entry points, and the path file of an editable install. In the other it lies as
pip lays out a wheel: a copy of the package with its bytecode, beside its metadata.
"""

from __future__ import annotations

import compileall
import shutil
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import airflow_bookmarks

_METADATA = "airflow_provider_bookmarks-*.dist-info"
_OURS = ("airflow_provider_bookmarks", "_editable_impl_airflow_provider_bookmarks", "airflow_bookmarks")


@dataclass(frozen=True, slots=True)
class Installations:
    """The interpreters of the two environments."""

    with_provider: Path
    without_provider: Path


@contextmanager
def installations() -> Iterator[Installations]:
    """Make the two environments; they are gone at the end.

    Raises:
        RuntimeError: the provider is not installed here, so there is no metadata to take.
    """
    packages = Path(sysconfig.get_path("purelib"))
    metadata = next(packages.glob(_METADATA), None)
    if metadata is None:
        raise RuntimeError(f"the provider is not installed in {packages}. Nothing was measured. Run 'make setup'.")
    with TemporaryDirectory(prefix="bench-installations-") as folder:
        ours, plain = (_environment(Path(folder) / name, packages) for name in ("with", "without"))
        shutil.copytree(metadata, _packages_of(ours) / metadata.name)
        _install(_packages_of(ours))
        yield Installations(_interpreter(ours), _interpreter(plain))


def _environment(folder: Path, packages: Path) -> Path:
    venv.create(folder, symlinks=True)
    for entry in packages.iterdir():
        if not entry.name.startswith(_OURS):
            (_packages_of(folder) / entry.name).symlink_to(entry)
    return folder


def _install(packages: Path) -> None:
    source = Path(airflow_bookmarks.__file__).parent
    target = packages / source.name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    if not compileall.compile_dir(target, quiet=1):
        raise RuntimeError(f"{source} does not compile. Nothing was measured.")


def _packages_of(folder: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder), "platbase": str(folder)}))


def _interpreter(folder: Path) -> Path:
    return folder / "bin" / Path(sys.executable).name
