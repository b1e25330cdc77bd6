"""A Python as the nodes of a cluster have it: boto3 and numpy, and neither this project nor Airflow."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

NEEDED = ("boto3", "numpy")  # what the runtime wants of the driver's Python, besides Spark's own


def make_driver_python(folder: Path) -> Path:
    """Make an environment in `folder` that holds `NEEDED` and what these need, linked; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for each in _closure(NEEDED):
        for name in {file.parts[0] for file in each.files or () if file.parts[0] != ".."}:
            link = packages / name
            if not link.is_symlink():
                link.symlink_to(Path(str(each.locate_file(name))))
    return folder / "bin" / "python"


def _closure(names: tuple[str, ...]) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        wanted = (Requirement(text) for text in found[name].requires or ())
        todo += [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return list(found.values())
