"""Sinks that `doctor` can ask what lies in them: what is staged, and whether their targets hold what runs say.

doctor   ->  staged_in(root)       which runs have something staged there
         ->  examine(output)       where the sink differs from what the run says
--repair ->  drop_staged(place)    what no run needs any more
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from airflow_bookmarks.sinks.sink import StagedSink

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.sinks.sink import StoredOutput


class DifferenceKind(Enum):
    """In what a sink differs from what the run says that wrote an output."""

    WAITS = auto()  # committed and not published; what is staged is there
    STAGED_GONE = auto()  # committed and not published; what was staged is gone, so nobody can publish it
    NOT_PUBLISHED = auto()  # the run says that it was published, and the sink says that it was not
    TARGET_GONE = auto()  # published, and the target is not there any more


@dataclass(frozen=True, slots=True)
class SinkDifference:
    """One difference; `what` is a clause that names the target, and `mend` a sentence."""

    kind: DifferenceKind
    what: str
    mend: str


class ExaminedSink(StagedSink):
    """A staged sink that tells what lies in it, for people. It is asked without a lease, beside runs at work."""

    @abstractmethod
    def staged_in(self, territory: Territory, root: str) -> Mapping[str, RunKey]:
        """Return what runs of the job have staged in a root, by place, with the run item of each.

        Raises:
            OutOfBoundsError: it is no root of the job. OSError, SourceError, OptionError: it is out of reach.
        """

    @abstractmethod
    def drop_staged(self, territory: Territory, root: str, place: str) -> None:
        """Remove one place that `staged_in` has returned. What is gone already is no error.

        Raises:
            OutOfBoundsError: root or place are none of the job. OSError, SourceError, OptionError: it is out of reach.
        """

    @abstractmethod
    def examine(self, output: StoredOutput) -> Sequence[SinkDifference]:
        """Return where the sink differs from what a committed or published run says of an output; nothing is changed.

        Raises:
            OutOfBoundsError: state names something that is not the job's.
            OSError, SourceError, OptionError: the sink is out of reach.
        """
