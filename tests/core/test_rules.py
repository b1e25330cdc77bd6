"""Small rules of core: options, names, settings, leases, partitions, plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import (
    NameInvalidError,
    OptionError,
    SchemaChangedError,
    SourceError,
    StateCorruptError,
    VersionMismatchError,
)
from airflow_bookmarks.core.files.file_list import decode_moves, encode_moves
from airflow_bookmarks.core.files.file_plan import FilePlan, UpstreamPlan, union
from airflow_bookmarks.core.head import CommitDecision, Head, Lease, LeaseDecision, busy_error, may_commit, may_take
from airflow_bookmarks.core.job import check_name, check_run_id
from airflow_bookmarks.core.option import Choice, Option
from airflow_bookmarks.core.plan import UpstreamWindow
from airflow_bookmarks.core.run import Execution
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.partition import partition_values, root_of, settle_types
from airflow_bookmarks.core.settings import Settings, check_versions
from airflow_bookmarks.core.text.instant import from_text, to_text
from airflow_bookmarks.sources.files.partition_rule import values_in

NOW = datetime(2013, 1, 1, tzinfo=UTC)


# ---- options


@pytest.mark.parametrize("option", Option)
def test_each_option_is_known_in_both_spellings(option: Option) -> None:
    assert Option.parse(option.value) is option
    assert Option.parse(f"job-bookmark-{option.value}") is option


@pytest.mark.parametrize("text", ["", "Enable", "enabled", "job-bookmark-", "job-bookmark-enabled", "on", "None"])
def test_anything_else_is_an_error_that_lists_the_valid_ones(text: str) -> None:
    with pytest.raises(OptionError, match="'enable', 'pause', 'disable'"):
        Option.parse(text)


def test_window_goes_with_pause_only() -> None:
    assert Choice.of("pause", "1", "2").from_run == "1"
    with pytest.raises(OptionError, match="pause"):
        Choice.of("enable", "1", "2")


# ---- names


@pytest.mark.parametrize("name", ["flights.clean", "a", "1", "group.task.3", "größe", "a~b-c_d", "x" * 250])
def test_good_names_pass(name: str) -> None:
    assert check_name("job", name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".a", "a/b", "a#b", "a b", "a=b", "a*", "x" * 251, "a\n", "a:b"])
def test_names_that_would_mean_something_in_a_key_or_path_are_refused(name: str) -> None:
    with pytest.raises(NameInvalidError, match="job"):
        check_name("job", name)


@pytest.mark.parametrize("run_id", ["", "a#b", "a\nb", "x" * 1001, "ü" * 501])
def test_run_ids_that_would_break_a_key_are_refused(run_id: str) -> None:
    with pytest.raises(NameInvalidError):
        check_run_id(run_id)


# ---- settings


def test_settings_survive_the_way_through_the_conf() -> None:
    settings = Settings(job="a.b", store="sqlite:////x.db", option="pause", from_run="1", to_run="2", attempt="3")
    conf = settings.to_conf()
    assert conf["spark.bookmarks.from"] == "1"
    assert Settings.from_conf({**conf, "spark.master": "local"}) == settings


def test_empty_text_counts_as_unset() -> None:
    assert Settings.from_conf({"spark.bookmarks.option": "", "spark.bookmarks.from": ""}) == Settings()


def test_unknown_setting_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"spark\.bookmarks\.optoin.*option"):
        Settings.from_conf({"spark.bookmarks.optoin": "disable"})


@pytest.mark.parametrize("conf", [{"attempt": "0"}, {"attempt": "x"}, {"dag": "{"}, {"dag": '{"x": 1}'}, {"dag": "[]"}])
def test_malformed_settings_are_errors(conf: dict[str, str]) -> None:
    with pytest.raises(OptionError):
        Settings(**conf).identity("local/1")


def test_another_major_version_is_refused() -> None:
    check_versions(None, "1.2.0")
    check_versions("1.0.0", "1.2.0")
    with pytest.raises(VersionMismatchError, match=r"2\.0\.0"):
        check_versions("2.0.0", "1.2.0")


# ---- leases


def leased(seconds: int) -> Head:
    return Head(lease=Lease("task", 2, NOW, NOW + timedelta(seconds=seconds), "nonce"))


@pytest.mark.parametrize(("seconds", "is_held"), [(1, True), (0, False), (-1, False)])
def test_lease_is_held_until_the_moment_at_which_it_expires(seconds: int, is_held: bool) -> None:
    head = leased(seconds)

    assert head.holder(NOW) == (head.lease if is_held else None)


def test_job_without_a_lease_has_no_holder_to_name() -> None:
    assert Head().holder(NOW) is None
    assert busy_error("flights", leased(1)).holder == "task"
    with pytest.raises(ValueError, match="no lease"):
        busy_error("flights", Head())


@pytest.mark.parametrize(
    ("head", "execution", "run_id", "attempt", "expected"),
    [
        (None, None, "task", 1, LeaseDecision.ALLOWED),
        (leased(60), None, "other", 1, LeaseDecision.BUSY),
        (leased(60), None, "task", 2, LeaseDecision.BUSY),
        (leased(60), None, "task", 3, LeaseDecision.ALLOWED),
        (leased(0), None, "other", 1, LeaseDecision.ALLOWED),
        (leased(0), Execution("task", 2), "task", 1, LeaseDecision.SUPERSEDED),
        (None, Execution("task", 1, killed_attempt=1), "task", 1, LeaseDecision.KILLED),
        (None, Execution("task", 1, killed_attempt=1), "task", 2, LeaseDecision.ALLOWED),
    ],
)
def test_who_may_take_the_lease(
    head: Head | None, execution: Execution | None, run_id: str, attempt: int, expected: LeaseDecision
) -> None:
    assert may_take(head, execution, run_id, attempt, NOW) is expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (Head(fence=7, version=3), CommitDecision.ALLOWED),
        (replace(leased(-60), fence=7, version=3), CommitDecision.ALLOWED),
        (Head(fence=8, version=3), CommitDecision.FENCED),
        (Head(fence=8, version=4), CommitDecision.FENCED),
        (Head(fence=7, version=4), CommitDecision.MOVED),
        (None, CommitDecision.FENCED),
    ],
)
def test_who_may_commit(head: Head | None, expected: CommitDecision) -> None:
    assert may_commit(head, 7, 3) is expected


# ---- instants


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - made aware below
def test_instants_survive_as_text_and_sort_as_text(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    assert from_text(to_text(aware)) == aware
    assert (to_text(aware) < to_text(NOW)) == (aware < NOW)


def test_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        to_text(NOW.replace(tzinfo=None))


# ---- partitions


def paths(*values: str) -> list[tuple[str, str]]:
    return [(f"/d/k={v}/f", "/d") for v in values]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["01", "2"], "int"),
        (["1", "3000000000"], "bigint"),
        (["2013-01-01", "2013-02-28"], "date"),
        (["2013-01-01", "2013-02-30"], "string"),
        (["1", "a"], "string"),
        (["1", "__HIVE_DEFAULT_PARTITION__"], "int"),
        (["__HIVE_DEFAULT_PARTITION__"], "string"),
    ],
)
def test_type_of_a_partition_column_is_settled_over_all_values(values: list[str], expected: str) -> None:
    assert settle_types(paths(*values), {}) == {"k": expected}


def test_settled_type_stays() -> None:
    assert settle_types(paths("1"), {"k": "string"}) == {"k": "string"}
    assert settle_types(paths("1"), {"k": "bigint"}) == {"k": "bigint"}
    assert settle_types([], {"k": "int"}) == {"k": "int"}


@pytest.mark.parametrize(("settled", "value"), [("int", "a"), ("int", "3000000000"), ("date", "1")])
def test_value_that_a_settled_type_cannot_take_is_an_error(settled: str, value: str) -> None:
    with pytest.raises(SchemaChangedError, match=value):
        settle_types(paths(value), {"k": settled})


def test_files_with_different_partition_columns_are_an_error() -> None:
    with pytest.raises(SourceError, match="different partition columns"):
        settle_types([("/d/a=1/f", "/d"), ("/d/b=1/f", "/d")], {})
    with pytest.raises(SchemaChangedError, match="partition columns were"):
        settle_types([("/d/b=1/f", "/d")], {"a": "int"})


def test_partition_values_are_decoded() -> None:
    assert partition_values("/d/a=x%20y/b=1/f", "/d") == {"a": "x y", "b": "1"}


def test_partition_values_are_decoded_character_by_character_as_spark_does() -> None:
    path = "/d/a=%FF/b=S%C3%A3o/c=São%41/f"

    assert partition_values(path, "/d") == {"a": "ÿ", "b": "SÃ£o", "c": "SãoA"}
    assert values_in(path.split("/")[2:-1]) == partition_values(path, "/d")


ROOTS = st.lists(st.sampled_from(["/", "/d", "/d/x=1", "/d/x", "/d/x=1/f", "/dd", "s3a://b", "s3a://b/d"]))
PATHS = st.sampled_from(["/d/x=1/f", "/d/x/f", "/d/f", "/dd/f", "/f", "s3a://b/d/f", "s3a://bb/f"])


@given(PATHS, ROOTS, st.booleans())
def test_root_of_a_file_is_the_first_that_holds_it(path: str, roots: list[str], recursive: bool) -> None:
    above = [root for root in roots if path == root or path.startswith(f"{root.rstrip('/')}/")]
    if not above:
        with pytest.raises(ValueError, match="lies below none"):
            root_of(path, roots, recursive=recursive)
        return
    folders = {root: path.removeprefix(root).strip("/").split("/")[:-1] for root in above}
    plain = [root for root in above if recursive or all("=" in folder for folder in folders[root])]
    assert root_of(path, roots, recursive=recursive) == (plain or above)[0]


# ---- plans

files = st.lists(
    st.builds(
        FileInfo,
        st.text(min_size=1).map(lambda t: "/" + t),
        st.integers(0, 2**50),
        st.integers(0, 2**41),
        st.one_of(st.none(), st.text()),
    ),
    unique_by=lambda f: f.path,
    max_size=20,
)


@given(files)
def test_plan_survives_being_stored(planned: list[FileInfo]) -> None:
    window = UpstreamWindow("up", "out", 1, 3, 2, 0, ((2, 0), (3, 1)), 4)
    plan = UpstreamPlan(Listing.of(planned), ("/d",), 30, 7, {"hidden": 3}, {"k": "int"}, window=window)
    again = UpstreamPlan.decode(plan.encode())
    assert list(again.files) == planned
    assert (again.roots, again.listed, again.known, again.skipped) == (("/d",), 30, 7, {"hidden": 3})
    assert (again.partition_types, again.edge) == ({"k": "int"}, window)


@pytest.mark.parametrize("body", [b"", b"x", b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
def test_damaged_plan_is_an_error_and_never_an_empty_plan(body: bytes) -> None:
    with pytest.raises(StateCorruptError):
        FilePlan.decode(body)


def test_publish_list_survives_being_stored() -> None:
    moves = [("/s/ü.txt", "/t/ü.txt"), ("/s/b", "/t/b")]
    assert decode_moves(encode_moves(moves)) == moves


def test_union_of_plans_takes_the_newest_version_of_each_file_once() -> None:
    old = FilePlan(Listing.of([FileInfo("/a", 1, 1), FileInfo("/b", 1, 1)]), ("/",), 2, 0)
    new = FilePlan(Listing.of([FileInfo("/a", 2, 2)]), ("/",), 2, 1)
    assert sorted((f.path, f.size_bytes) for f in union([old, new]).files) == [("/a", 2), ("/b", 1)]
