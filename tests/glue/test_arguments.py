"""`getResolvedOptions` follows Glue's rules, and says what Glue ignores."""

from __future__ import annotations

import re

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.arguments import AssumedText, getResolvedOptions
from airflow_bookmarks.glue.errors import GlueArgumentError

_ENABLE = ("--job-bookmark-option", "job-bookmark-enable")


def _resolved(*args: str, options: list[str] | None = None, **kwargs: bool) -> dict[str, object]:
    return getResolvedOptions(["script.py", *args], options, **kwargs)


def test_listed_arguments_come_back_with_underscores() -> None:
    found = _resolved("--JOB_NAME", "orders", "--day-key=d1", "--other", "x", options=["JOB_NAME", "day-key"])

    assert (found["JOB_NAME"], found["day_key"], "other" in found) == ("orders", "d1", False)


def test_nothing_given_is_disable_and_marked_as_assumed() -> None:
    found = _resolved(options=[])

    assert found["job_bookmark_option"] == "job-bookmark-disable"
    assert isinstance(found["job_bookmark_option"], AssumedText)
    assert (found["job_bookmark_from"], found["job_bookmark_to"]) == (None, None)


def test_run_id_is_there_without_being_listed_and_made_up_where_none_is_given() -> None:
    assert re.fullmatch("jr_[0-9a-f]{64}", str(_resolved(options=[])["JOB_RUN_ID"]))
    assert _resolved("--JOB_RUN_ID", "jr_1", options=["JOB_RUN_ID"])["JOB_RUN_ID"] == "jr_1"


def test_without_a_list_everything_given_is_returned() -> None:
    found = _resolved("--JOB_NAME", "orders", "--flag", "--key", "v", *_ENABLE)

    assert (found["JOB_NAME"], found["flag"], found["key"]) == ("orders", "", "v")
    assert found["job_bookmark_option"] == "job-bookmark-enable"
    assert _resolved()["JOB_NAME"] == ""


@pytest.mark.parametrize("name", ["TempDir", "RedshiftTempDir"])
def test_either_temporary_folder_sets_both(name: str) -> None:
    found = _resolved(f"--{name}", "s3://tmp/x", options=[])

    assert (found["TempDir"], found["RedshiftTempDir"]) == ("s3://tmp/x", "s3://tmp/x")


def test_listed_temporary_folder_may_be_missing() -> None:
    assert _resolved(options=["TempDir"])["TempDir"] == ""


def test_missing_argument_raises_and_does_not_end_the_process() -> None:
    with pytest.raises(GlueArgumentError, match="--JOB_NAME"):
        _resolved("--other", "x", options=["JOB_NAME"])


@pytest.mark.parametrize("name", ["job-bookmark-option", "job_bookmark_from", "continuation-option", "encryption-type"])
def test_reserved_name_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="Using reserved arguments"):
        _resolved(options=[name])


def test_abbreviation_is_taken_only_if_asked_for() -> None:
    assert _resolved("--day", "d1", options=["day_long"], allow_abbrev=True)["day_long"] == "d1"
    with pytest.raises(GlueArgumentError, match="--day_long"):
        _resolved("--day", "d1", options=["day_long"])


@pytest.mark.parametrize(
    ("legacy", "option"),
    [("continuation-enabled", "enable"), ("continuation-readonly", "pause"), ("continuation-ignore", "disable")],
)
def test_legacy_spelling_means_the_same(legacy: str, option: str) -> None:
    found = _resolved("--continuation-option", legacy, options=[])

    assert found["job_bookmark_option"] == f"job-bookmark-{option}"


def test_new_spelling_wins_over_the_legacy_one() -> None:
    found = _resolved("--continuation-option", "continuation-readonly", *_ENABLE, options=[])

    assert found["job_bookmark_option"] == "job-bookmark-enable"


def test_unknown_option_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(GlueArgumentError, match=r"invalid choice: 'persist'.*'enable', 'pause', 'disable'"):
        _resolved("--job-bookmark-option", "persist", options=[])


@pytest.mark.parametrize(("given", "missing"), [("from", "to"), ("to", "from")])
def test_half_a_range_is_refused_with_any_option(given: str, missing: str) -> None:
    with pytest.raises(RuntimeError, match=f"Missing option or value for --job-bookmark-{missing}"):
        _resolved(f"--job-bookmark-{given}", "jr_1", options=[])


def test_range_goes_with_pause_alone() -> None:
    span = ("--job-bookmark-from", "jr_1", "--job-bookmark-to", "jr_3")
    found = _resolved("--job-bookmark-option", "job-bookmark-pause", *span, options=[])

    assert (found["job_bookmark_from"], found["job_bookmark_to"]) == ("jr_1", "jr_3")
    with pytest.raises(RuntimeError, match=r"Invalid option\(s\)--job-bookmark-from --job-bookmark-to"):
        _resolved(*_ENABLE, *span, options=[])


@pytest.mark.parametrize("name", ["job_bookmark_option", "job-bookmark-form", "jobbookmark-option=x"])
def test_misspelt_argument_is_an_error_that_names_the_right_ones(name: str) -> None:
    with pytest.raises(OptionError, match="known are --job-bookmark-option"):
        _resolved(f"--{name}", "job-bookmark-enable", options=[])


def test_text_for_a_list_of_options_is_refused() -> None:
    with pytest.raises(GlueArgumentError, match=r"expected a list"):
        getResolvedOptions(["script.py"], "JOB_NAME")


def test_other_parameters_of_glue_pass() -> None:
    found = _resolved("--enable-continuous-cloudwatch-log", "true", "--enable-metrics", "--key", "v", options=["key"])

    assert found["key"] == "v"
