"""The conformance suite of sinks: a kind of sink is correct if a subclass of one of these classes passes with pytest.

    StagedSinkConformance        a sink that stages, and publishes after the commit
    OverwritingSinkConformance   the same, for one that replaces what earlier runs published
    CommittingSinkConformance    a sink that commits by itself, under the token of a run

They include tests of optional abilities, and skip those that a sink lacks, saying what is then not shown:

    CleanedSinkConformance       a clean removes what undone runs have staged and made visible (`CleanedSink`)
    SidewaysSinkConformance      pause and disable runs write to it (`SidewaysSink`)
    CollectedSinkConformance     gc removes what such runs left staged when they were killed (`CollectedSink`)
    ExaminedSinkConformance      doctor asks what is staged, and whether the target holds what runs say (`ExaminedSink`)

Name the subclass `Test...` and give it a pytest fixture `ground`, which makes an empty target for one test; the
classes in `sink_ground` define it. Import this module in test modules only: it needs pytest.

    class TestMySink(StagedSinkConformance):
        @pytest.fixture
        def ground(self, tmp_path):
            return MyGround(tmp_path)
"""

from airflow_bookmarks.testing.sink_conformance.cleaned import CleanedSinkConformance
from airflow_bookmarks.testing.sink_conformance.committing import CommittingSinkConformance
from airflow_bookmarks.testing.sink_conformance.examined import ExaminedSinkConformance
from airflow_bookmarks.testing.sink_conformance.sideways import CollectedSinkConformance, SidewaysSinkConformance
from airflow_bookmarks.testing.sink_conformance.staged import OverwritingSinkConformance, StagedSinkConformance
from airflow_bookmarks.testing.sink_ground import JOB, CommittingSinkGround, StagedSinkGround

__all__ = [
    "JOB",
    "CleanedSinkConformance",
    "CollectedSinkConformance",
    "CommittingSinkConformance",
    "CommittingSinkGround",
    "ExaminedSinkConformance",
    "OverwritingSinkConformance",
    "SidewaysSinkConformance",
    "StagedSinkConformance",
    "StagedSinkGround",
]
