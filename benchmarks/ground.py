"""Folders of many small files to read: made once, kept below `build/bench/data`, and reused."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DATA = Path("build/bench/data")
COLUMNS = "id INT, batch INT"

_FILES_A_FOLDER = 1000
_FIRST_ARRIVAL = 900_000  # folders from this number on hold what arrives during a benchmark
_MADE_S = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Ground:
    """`files` empty files in `root`, a partition for each thousand, all there before anything arrives.

    Empty, because what is measured is the finding of files. What arrives has one row in each file, to be counted.
    """

    root: Path
    files: int

    def arrive(self, lot: int, files: int) -> Sequence[str]:
        """Let new files arrive, in a partition of their own; return their paths."""
        folder = self.root / f"batch={_FIRST_ARRIVAL + lot}"
        folder.mkdir()
        paths = [folder / f"part-{number:05d}.csv" for number in range(files)]
        for number, path in enumerate(paths):
            path.write_text(f"{number}\n")
        return [str(path) for path in paths]

    def leave(self) -> None:
        """Take away what has arrived."""
        for folder in self.root.glob(f"batch={_FIRST_ARRIVAL // 100_000}?????"):
            shutil.rmtree(folder)


@contextmanager
def ground(files: int) -> Iterator[Ground]:
    """Open the ground of so many files (whole thousands), which is made if it is not there; what arrives is removed."""
    root = (DATA / f"files-{files}").absolute()
    made = root.with_suffix(".made")
    if not made.exists():
        shutil.rmtree(root, ignore_errors=True)
        for number in range(files // _FILES_A_FOLDER):
            make_files(root / f"batch={number:06d}", _FILES_A_FOLDER, _MADE_S + number)
        made.touch()
    opened = Ground(root, files)
    opened.leave()
    try:
        yield opened
    finally:
        opened.leave()


def make_files(folder: Path, files: int, modified_s: int) -> None:
    """Make so many empty files in a new folder, all of one time."""
    folder.mkdir(parents=True)
    opened = os.open(folder, os.O_RDONLY)
    try:
        for number in range(files):
            name = f"part-{number:05d}.csv"
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=opened))
            os.utime(name, (modified_s, modified_s), dir_fd=opened)
    finally:
        os.close(opened)


def clean() -> None:
    """Remove all that benchmarks of files have made and kept."""
    shutil.rmtree(DATA, ignore_errors=True)
