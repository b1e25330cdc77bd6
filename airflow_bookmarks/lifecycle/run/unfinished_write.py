"""Track the writes that a script has begun: one that was refused or never finished blocks the commit."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.lifecycle.state.guard import Guarded, guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNFINISHED = "neither .save(path) nor a method of a format, such as .parquet(path), was called"


class TracksWrites(Guarded):
    """The begun writes of a run: the part that all kinds of run share."""

    def __init__(self) -> None:
        super().__init__()
        self._unwritten: dict[str, str] = {}

    @property
    def job(self) -> str:
        """The job's name."""
        raise NotImplementedError

    def _check_running(self, what: str) -> None:
        raise NotImplementedError

    @guarded
    def begin_write(self, output: str) -> None:
        """Record that the script is about to write an output, which then has to be staged before the commit.

        Raises:
            MisuseError: the run is over.
        """
        self._check_running(f"write {output!r}")
        self._unwritten[output] = _UNFINISHED

    @guarded
    def refuse_write(self, output: str, error: BaseException) -> None:
        """Record why a begun write came to nothing."""
        self._unwritten[output] = cause_of(error).rstrip(".")

    @contextmanager
    def writing(self, output: str) -> Iterator[None]:
        """Record an error of the block as the reason why an output is not written."""
        try:
            yield
        except BaseException as error:
            self.refuse_write(output, error)
            raise

    @guarded
    def _note_written(self, output: str) -> None:
        self._unwritten.pop(output, None)

    def _check_written(self, done: str) -> None:
        """Make sure that each begun write was finished; `done` is what else the run would be: "committed".

        Raises:
            MisuseError: one was not, also where the script caught its error.
        """
        if self._unwritten:
            said = "; ".join(f"output {output!r} was not written: {why}" for output, why in self._unwritten.items())
            raise MisuseError(
                f"job {self.job!r}: {said}. Nothing was {done}: the input would count as read, and these rows would be "
                "nowhere. Finish the write, or let its error end the run."
            )
