"""The turn of one driver: what a step sees, and the moves that it offers. Each move is one atomic request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from model.state import DONE, Cleaning, Driver, Place, Publication, Run, RunKey, State, stored_run

if TYPE_CHECKING:
    from model.configuration import Configuration


class Move(NamedTuple):
    """What one step may lead to."""

    label: str
    state: State
    driver: Driver


class Turn:
    """One driver in one state. A fresh driver is one that runs alone: it meets neither lost replies nor exceptions."""

    __slots__ = ("configuration", "driver", "head", "is_fresh", "is_mine", "moves", "state", "without")

    def __init__(self, configuration: Configuration, state: State, driver: Driver, is_fresh: bool) -> None:
        self.configuration = configuration
        self.without = configuration.without
        self.state = state
        self.driver = driver
        self.is_fresh = is_fresh
        self.head = head = state.head
        self.is_mine = head.lease is not None and head.lease.fence == driver.fence
        self.moves: list[Move] = []

    def keeps(self, rule: str) -> bool:
        """Say whether a rule holds in this search."""
        return rule not in self.without

    def go(self, label: str, driver: Driver, state: State | None = None) -> None:
        """Offer a move."""
        self.moves.append(Move(label, self.state if state is None else state, driver))

    def end(self, label: str, outcome: str = "stale", state: State | None = None) -> None:
        """Offer to be the driver's last move."""
        self.go(label, self.driver._replace(step=DONE, found=None, outcome=outcome), state)

    @property
    def may_lose_reply(self) -> bool:
        return self.state.losable_replies > 0 and not self.is_fresh

    def lose_reply(self, label: str, driver: Driver, state: State) -> None:
        """Offer the same move with its reply lost."""
        self.go(f"{label}, reply lost", driver, state._replace(losable_replies=state.losable_replies - 1))

    @property
    def may_raise(self) -> bool:
        return self.configuration.has_exceptions and not self.is_fresh

    @property
    def place(self) -> Place:
        """Where the driver stages."""
        driver = self.driver
        return self.configuration.place(driver.epoch, driver.run_number, driver.fence)

    @property
    def writes_own_sink(self) -> bool:
        """Whether the sink that commits by itself is still to be written."""
        return self.configuration.has_own_sink and not self.driver.landed

    @property
    def step_after_staging(self) -> str:
        if self.driver.kind == "replay":
            return "commit replay"
        return "write own sink" if self.writes_own_sink and self.keeps("staged_first") else "commit"

    @property
    def publication(self) -> Publication:
        """What the driver publishes."""
        return cast("Publication", self.driver.task)

    @property
    def cleaning(self) -> Cleaning:
        """What the driver cleans."""
        return cast("Cleaning", self.driver.task)

    @property
    def open_run(self) -> Run:
        """The run that the driver settles or replays."""
        return stored_run(self.state, cast("RunKey", self.driver.task))


def released(state: State) -> State:
    """Return the state without a lease."""
    return state._replace(head=state.head._replace(lease=None))
