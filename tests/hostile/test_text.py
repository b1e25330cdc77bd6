"""Text of others: secrets in errors and roots, escape codes in names and reasons (SEC-1, SEC-8)."""

from __future__ import annotations

import json
import logging

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.quarantine import QuarantinedFile
from airflow_bookmarks.core.redaction import CUT, MAX_ERROR
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.files.filesystem import open_filesystem
from airflow_bookmarks.lifecycle.history import history
from airflow_bookmarks.lifecycle.quarantine import quarantined_files
from airflow_bookmarks.lifecycle.transfer import export
from airflow_bookmarks.sources.files import FileSource
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop

SECRET = "hunter2hunter2"
ERROR = f"Py4JJavaError: jdbc:postgresql://etl:{SECRET}@db:5432/lake?ssl=true refused the connection"
TOLD = "Py4JJavaError: jdbc:postgresql://***@db:5432/lake?ssl=true refused the connection"


def failed(shop: Shop, error: str = ERROR) -> None:
    """Let a run fail with an error after it has planned."""
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort(error)


def everything(shop: Shop) -> str:
    """Return all that the table holds of the job, as text."""
    return repr(list(shop.store.table.query(shop.store.keys("copy").partition)))


# ---- errors


def test_error_of_a_failed_run_is_stored_without_its_password(shop: Shop) -> None:
    failed(shop)
    assert SECRET not in everything(shop)
    (row,) = history(shop.store, "copy", with_open=True)
    assert row["error"] == TOLD


def test_whole_error_is_in_the_log_of_the_task(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failed(shop, ERROR + "x" * 5000)
    (row,) = history(shop.store, "copy", with_open=True)
    assert len(row["error"]) == MAX_ERROR
    assert row["error"].endswith(CUT)
    assert ERROR in caplog.text
    assert "x" * 5000 in caplog.text


def test_error_that_an_earlier_version_stored_is_shown_and_exported_without_its_password(shop: Shop) -> None:
    failed(shop, "refused")
    key = shop.store.keys("copy").run(RunKey(1, 1))
    shop.store.table.transact([Update(key, set={"error": ERROR})])
    assert SECRET in everything(shop)
    (row,) = history(shop.store, "copy", with_open=True)
    assert row["error"] == TOLD
    document = json.dumps(export(shop.store))
    assert SECRET not in document
    assert "***@db:5432" in document


def test_cause_of_a_quarantined_file_is_stored_without_its_password(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.quarantine("raw", dict.fromkeys(plan.files.paths, ERROR))
    run.commit()
    (row,) = quarantined_files(shop.store, "copy")
    assert row["error"] == TOLD
    assert SECRET not in everything(shop)


def test_cause_that_an_earlier_version_stored_is_shown_without_its_password() -> None:
    assert QuarantinedFile.parse(["/a", "v", 1, 2, ERROR, 3]).error == TOLD


# ---- roots


@pytest.mark.parametrize(
    "root",
    [
        f"s3a://AKIA:{SECRET}@lake/raw",
        f"s3a://AKIA:a/{SECRET}@lake/raw",
        f"hdfs://etl:{SECRET}@nn/raw",
        f"webhdfs://etl:{SECRET}@nn/raw",
        f"gs://etl:{SECRET}@lake/raw",
        f"abfss://etl:{SECRET}@lake.dfs.core.windows.net/raw",
        f"ftp://etl:{SECRET}@host/raw",
    ],
)
def test_root_with_a_password_is_refused_without_repeating_it(root: str) -> None:
    with pytest.raises(OptionError, match="user and a password") as refused:
        open_filesystem(root)
    assert SECRET not in str(refused.value)
