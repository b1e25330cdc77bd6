"""`job.state` within a run: what earlier runs left, what this one sets, and what its commit stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.job_state import STATE_CONTEXT, STATE_KIND, decode_states, encode_states, with_state
from airflow_bookmarks.core.run import ContextState, RunKey
from airflow_bookmarks.files.access import given_access, reached_by
from airflow_bookmarks.lifecycle.state.guard import Guarded, guarded
from airflow_bookmarks.lifecycle.state.positions import ContextReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class JobState:
    """One named value that a job keeps from run to run. Made by `job.state(name)`.

    Example:
        cursor = job.state("cursor")
        page = fetch(since=cursor.get("2013-01-01"))
        cursor.set(page.next)
    """

    name: str
    _states: JobStates
    _check_may_set: Callable[[str], None]

    def get(self, default: Any = None) -> Any:
        """Return the value: what this run set, else what the last committed living run left, else `default`."""
        return self._states.get(self.name, default)

    def set(self, value: Any) -> None:
        """Set the value that the commit stores, in one transaction with the positions; None removes it.

        Raises:
            OptionError: it is no JSON value, or all values of the job together have more than 16 KB.
            MisuseError: the run is over, or an output that commits by itself was written.
        """
        self._check_may_set(f"set state {self.name!r}")
        self._states.set(self.name, value)


class JobStates(Guarded):
    """All values of one job, as one run sees them; read from the store on first use."""

    def __init__(self, reader: ContextReader) -> None:
        super().__init__()
        self._reader = reader
        self._stored: bytes | None = None
        self._values: Mapping[str, Any] | None = None
        self._access = given_access()  # of the job: values are read when the script first asks for one

    @classmethod
    def seen_by(cls, store: BookmarkStore, job: str, run: Run) -> JobStates:
        """Return the values as an earlier run saw them when it began, for its replay."""
        figures = run.metrics.get(STATE_KIND, {})
        origin, set_in = figures.get("from"), figures.get("set_in")
        state = None if origin is None else ContextState(STATE_KIND, STATE_KIND, RunKey.parse(origin), set_in=set_in)
        return cls(ContextReader(store, job, Head(contexts={} if state is None else {STATE_CONTEXT: state})))

    @property
    def is_used(self) -> bool:
        """Whether the run has read or set a value."""
        return self._values is not None

    @guarded
    def get(self, name: str, default: Any) -> Any:
        """Return a copy of a value, `default` where there is none."""
        # A value that is changed in place and not set again is not stored, so callers get a copy.
        return decode_states(encode_states({name: self._known()[name]}))[name] if name in self._known() else default

    @guarded
    def set(self, name: str, value: Any) -> None:
        """Set a value; see `JobState.set`."""
        self._values = with_state(self._known(), name, value)

    @guarded
    def restore(self, body: bytes) -> None:
        """Go on with the values that a taken-over run left."""
        self._known()
        self._values = decode_states(body)

    @guarded
    def encoded(self) -> bytes | None:
        """Return the values as they are now; None if the run has neither read nor set one."""
        return None if self._values is None else encode_states(self._values)

    @guarded
    def changed(self) -> bytes | None:
        """Return the values to be stored; None if they have not changed."""
        body = self.encoded()
        return None if body == self._stored else body

    @property
    def has_changed(self) -> bool | None:
        """Whether there are values to be stored; None if the run has neither read nor set one."""
        return self.changed() is not None if self.is_used else None

    def stats(self) -> dict[str, Any]:
        """Return what the run record keeps of it: the run, or change, that left what was read, and the names set.

        Only names: a value may be a secret.
        """
        if self._values is None:
            return {}
        state = self._reader.state(STATE_CONTEXT)
        set_in = {} if state is None or state.set_in is None else {"set_in": state.set_in}
        origin = None if state is None else str(state.run)
        return {STATE_KIND: {"from": origin, **set_in, "names": sorted(self._values)}}

    @guarded
    def _known(self) -> Mapping[str, Any]:
        if self._values is None:
            with reached_by(self._access):
                position = self._reader.found(STATE_CONTEXT).position
            self._values = {} if position is None else decode_states(position)
            self._stored = encode_states(self._values)
        return self._values


class KeepsState:
    """`job.state` of a run: the part that active and side runs share."""

    _states: JobStates

    def _check_running(self, what: str) -> None:
        raise NotImplementedError

    def _check_may_set(self, what: str) -> None:
        self._check_running(what)

    def state(self, name: str) -> JobState:
        """Return the value `name` that the job keeps from run to run.

        Raises:
            NameInvalidError: it can't be a name.
        """
        return JobState(check_name("state", name), self._states, self._check_may_set)


def state_context(key: RunKey) -> ContextState:
    """Return the context of `job.state` after the run `key` has set it."""
    return ContextState(STATE_KIND, STATE_KIND, key)
