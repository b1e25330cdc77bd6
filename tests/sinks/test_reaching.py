"""Sinks get what finds the logins of databases from the store, wherever the lifecycle asks them to do I/O."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, Run, RunKey, RunState
from airflow_bookmarks.databases.access import DatabaseAccess, EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.publish import sweep_after_mark, sweep_before_plan
from airflow_bookmarks.sinks.registry import SINKS, SinkRegistry
from airflow_bookmarks.sinks.sink import Publication, Sink, StagedSink, StoredOutput
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.memory import memory_store


class OtherAccess:
    """It knows one login."""

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        return DatabaseLogin("sqlite", None, None, "/nowhere.db")


class Vault(StagedSink):
    """It notes by which access it was reached when it swept."""

    kind = "vault"

    def __init__(self, swept: list[DatabaseAccess], databases: DatabaseAccess | None = None) -> None:
        self.swept, self.databases = swept, databases

    def reaching(self, databases: DatabaseAccess) -> Sink:
        return Vault(self.swept, databases)

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        return OutputEntry(self.kind, request.target, "place"), "root"

    def prepare(self, output: StoredOutput) -> Publication | None:
        return None

    def check_root(self, territory: Territory, root: str) -> None:
        """Take any."""

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        if self.databases is None:
            raise OptionError("reached by nothing")
        self.swept.append(self.databases)


def run_with(*, left_out: bool) -> Run:
    """Return a published run with an output in the vault."""
    entry = OutputEntry("vault", "target", "place", is_left_out=left_out)
    return Run(RunKey(1, 1), RunState.COMMITTED, 1, "id", 1, "2026-11-27T02:04:11.000000Z", outputs={"out": entry})


def test_store_finds_logins_by_the_environment_unless_another_access_is_set() -> None:
    with memory_store() as store:
        assert store.databases == EnvironmentAccess()
        store.databases = OtherAccess()
        assert isinstance(store.databases, OtherAccess)
        assert BookmarkStore.databases == EnvironmentAccess()


def test_kind_that_needs_no_login_stays_what_it_is() -> None:
    assert SINKS.reaching(OtherAccess()).find("files") is SINKS.find("files")


@pytest.mark.parametrize("when", ["before the plan", "after the mark"])
def test_sweep_reaches_databases_as_the_store_does(when: str) -> None:
    swept: list[DatabaseAccess] = []
    sinks = SinkRegistry.of(Vault(swept))
    with memory_store() as store:
        store.databases = access = OtherAccess()
        if when == "before the plan":
            sweep_before_plan(store, "job", ["vault:root"], 1, sinks)
        else:
            sweep_after_mark(store, "job", run_with(left_out=False), ["vault:root"], 1, sinks)
    assert swept == [access]


def test_extended_registry_reaches_databases_as_before() -> None:
    swept: list[DatabaseAccess] = []
    access = OtherAccess()
    sinks = SinkRegistry.of().reaching(access).extended(Vault(swept))
    sinks.sweep(Territory("test", "job"), "vault:root", 1)
    assert swept == [access]


@pytest.mark.parametrize("left_out", [False, True])
def test_what_a_publish_clears_is_swept_at_the_begin_alone_unless_an_output_was_left_out(left_out: bool) -> None:
    class Tidy(Vault):
        clears_as_it_publishes = True

        def reaching(self, databases: DatabaseAccess) -> Sink:
            return Tidy(self.swept, databases)

    swept: list[DatabaseAccess] = []
    sinks = SinkRegistry.of(Tidy(swept))
    with memory_store() as store:
        sweep_after_mark(store, "job", run_with(left_out=left_out), ["vault:root"], 1, sinks)
        assert len(swept) == left_out
        sweep_before_plan(store, "job", ["vault:root"], 1, sinks)
    assert len(swept) == left_out + 1
