"""Test tools for users' own bookmarked jobs: `docs/getting-started/testing.md` shows them on a whole job.

    memory              an empty store in memory, for one test
    fixtures            the same as a pytest fixture: pytest_plugins = ["airflow_bookmarks.testing.fixtures"]
    run_over            run a job once for each arrival, and again after a crash
    result              what each of these runs has read, committed and published
    rows                the assertion that each arrived row is in the target once
    arrival             what arrives before a run, for any kind of input
    files               arrivals of files: new, late, tied, overwritten, of another schema, empty, corrupt, vanishing
    crash               a driver that dies at a point of the protocol
    driver              the store as such a driver sees it
    source_conformance  the tests for a kind of source of your own, to inherit
    sink_conformance    the same for a kind of sink of your own
    sink_ground         what these tests need from the test of a sink

The package imports neither Airflow nor Spark; a test passes its own session. Only `fixtures` and the two conformance
suites import pytest.
"""

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.testing import files
from airflow_bookmarks.testing.arrival import Arrival
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.result import RunResult, RunResults
from airflow_bookmarks.testing.rows import assert_each_row_once
from airflow_bookmarks.testing.run_over import RunSetup, run_over

__all__ = [
    "Arrival",
    "Failpoint",
    "RunResult",
    "RunResults",
    "RunSetup",
    "SimulatedCrash",
    "assert_each_row_once",
    "files",
    "memory_store",
    "run_over",
]
