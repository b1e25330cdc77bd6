"""What a run knows of the outputs that it writes: which were begun, placed, staged, and built for the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError, PublishError
from airflow_bookmarks.core.text.cause import cause_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.lifecycle.run.checks.replacement import Replacement
    from airflow_bookmarks.sinks.staging import Staged

_UNFINISHED = "neither .save(path) nor a method of a format, such as .parquet(path), was called"


class RunOutputs:
    """The outputs of one run by name; without a store or a lock.

    `placed` are stored before their first byte is written, `staged` is what was written; of an overwrite,
    `replacements` are what it removes of earlier runs. `unfinished` says why a begun write is not staged.
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self.placed: dict[str, OutputEntry] = {}
        self.staged: dict[str, Staged] = {}
        self.replacements: dict[str, Replacement] = {}
        self.unfinished: dict[str, str] = {}
        self._published: dict[str, str] = {}  # by path in a target: the output that publishes it

    def begin_write(self, output: str) -> None:
        """Record that an output is about to be written, and has to be staged before the commit."""
        self.unfinished[output] = _UNFINISHED

    def refuse_write(self, output: str, error: BaseException) -> None:
        """Record why a begun write came to nothing."""
        self.unfinished[output] = cause_of(error).rstrip(".")

    def check_new(self, output: str) -> None:
        """Make sure that an output is written once.

        Raises:
            MisuseError: it was placed before.
        """
        if output in self.placed:
            raise MisuseError(
                f"job {self._job!r}: output {output!r} is written twice in one run. Nothing was committed. Give each "
                "output a name of its own."
            )

    def place(self, output: str, entry: OutputEntry) -> None:
        """Take an output that has a place now."""
        self.placed[output] = entry

    def stage(self, output: str, staged: Staged) -> None:
        """Take what was written; its write is finished.

        Raises:
            PublishError: another output publishes to one of its paths: the later of the two would replace the file.
        """
        self._check_apart(output, staged)
        self.staged[output] = staged
        self.unfinished.pop(output, None)

    def _check_apart(self, output: str, staged: Staged) -> None:
        for _, path in staged.moves:
            other = self._published.setdefault(path, output)
            if other != output:
                raise PublishError(
                    f"job {self._job!r}: outputs {other!r} and {output!r} both publish a file to {path!r}, and the "
                    "later one would replace that of the other. Nothing was committed or published. Give each output "
                    "a folder of its own, or write one union of both frames."
                )

    def check_written(self, done: str, but: Collection[str] = ()) -> None:
        """Make sure that each begun write was finished; `done` is what else the run would be: "committed".

        `but` are the outputs that are about to be written.

        Raises:
            MisuseError: one was not, also where the script caught its error.
        """
        unfinished = {output: why for output, why in self.unfinished.items() if output not in but}
        if unfinished:
            said = "; ".join(f"output {output!r} was not written: {why}" for output, why in unfinished.items())
            raise MisuseError(
                f"job {self._job!r}: {said}. Nothing was {done}: the input would count as read, and these rows would "
                "be nowhere. Finish the write, or let its error end the run."
            )

    def check_staged(self, done: str) -> None:
        """Make sure that each placed output was written; `done` is what else the run would be: "committed".

        Raises:
            MisuseError: one was not.
        """
        unfinished = sorted(self.placed.keys() - self.staged.keys())
        if unfinished:
            raise MisuseError(
                f"job {self._job!r}: outputs {unfinished} were placed and not written. Nothing was {done}."
            )
