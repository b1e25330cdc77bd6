"""Loads into Redshift keep the promises of every sink that stages, on PostgreSQL in its place (GLUE-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_conformance import StagedSinkConformance
from tests.sinks.redshift.copy_ground import CopyGround


class TestCopies(StagedSinkConformance):
    @pytest.fixture
    def ground(self, login: DatabaseLogin, blobs: BlobStore, tmp_path: Path) -> CopyGround:
        return CopyGround(login, blobs, tmp_path)
