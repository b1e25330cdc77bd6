"""Every kind of run follows one protocol; mypy checks the signatures of the list below."""

from __future__ import annotations

import pytest

from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession

KINDS: list[type[RunSession]] = [ActiveRun, ReplayRun, DetachedRun]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_run_has_every_member_of_the_protocol(kind: type[RunSession]) -> None:
    members = {name for name in vars(RunSession) if not name.startswith("_")}

    assert members <= {name for each in kind.__mro__ for name in vars(each)}
