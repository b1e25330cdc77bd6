"""An environment for a tool that is measured beside ours, and the process that runs it there."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HERE = Path(__file__).parent
_MADE = _HERE.parents[1] / "build" / "bench" / "peers"


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool in a process of its own, which does the same thing again each time it is asked."""

    name: str
    asks: IO[str]
    answers: IO[str]

    def run(self) -> tuple[float, int]:
        """Let it do the thing once; return the seconds that it took, by its own clock, and its count.

        Raises:
            RuntimeError: the process has ended.
        """
        self.asks.write("run\n")
        self.asks.flush()
        answer = self.answers.readline().split()
        if not answer:
            raise RuntimeError(f"{self.name} has ended. Its pair was not measured; what it said is above.")
        return float(answer[0]), int(answer[1])


@contextmanager
def peer(name: str, script: str, *arguments: str) -> Iterator[Peer]:
    """Run `script` of this folder with these arguments, on what `<name>.txt` lists."""
    command = [str(_interpreter(name)), str(_HERE / script), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError(f"{name} has no pipes")
        yield Peer(name, process.stdin, process.stdout)
        process.stdin.close()


def _interpreter(name: str) -> Path:
    """Return the interpreter of the environment of a tool, which is made when its list has changed."""
    folder, listed = _MADE / name, (_HERE / f"{name}.txt").read_text()
    stamp = folder / ".installed"
    if not stamp.exists() or stamp.read_text() != listed:
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--no-project", "--python", sys.executable, str(folder)], check=True
        )
        install = [uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), "-r"]
        subprocess.run([*install, str(_HERE / f"{name}.txt")], check=True)
        stamp.write_text(listed)
    return folder / "bin" / "python"
