"""Reads of files by options: which files, which columns, and what a run with nothing new returns."""

from __future__ import annotations

import bz2
import json
import logging
import os
import time
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceError
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from tests.glue.running import Script, rows_of

pytestmark = pytest.mark.spark

CSV: dict[str, Any] = {"connection_type": "file", "format": "csv", "transformation_ctx": "raw"}


def csv(script: Script, more: dict[str, Any] | None = None, **format_options: Any) -> dict[str, Any]:
    options = {"paths": [script.path("raw")], **(more or {})}
    return {**CSV, "connection_options": options, "format_options": format_options}


def test_csv_without_a_header_has_columns_by_number_and_all_are_text(script: Script) -> None:
    script.put("raw/a.csv", "1,x", "2,")
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**csv(script)).toDF())
    assert frame.dtypes == [("col0", "string"), ("col1", "string")]
    assert rows_of(frame) == [("1", "x"), ("2", None)]


@pytest.mark.seldom
def test_only_new_files_are_read_and_an_empty_increment_has_no_columns(script: Script) -> None:
    read = csv(script, withHeader=True)
    script.put("raw/a.csv", "n,name", "1,x")
    assert script.rows(**read) == [("1", "x")]
    script.put("raw/b.csv", "n,name", "2,y")
    assert script.rows(**read) == [("2", "y")]

    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**read))
    assert (frame.toDF().columns, frame.count()) == ([], 0)


def test_empty_increment_has_its_columns_where_the_conf_says_so(script: Script) -> None:
    script.spark.conf.set("spark.bookmarks.glue.empty_columns", "true")
    script.put("raw/a.csv", "n,name", "1,x")
    read = csv(script, withHeader=True)
    script.rows(**read)
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**read))
    assert frame.toDF().columns == ["n", "name"]


@pytest.mark.seldom
def test_file_that_is_overwritten_is_read_again(script: Script) -> None:
    script.put("raw/a.csv", "1")
    script.rows(**csv(script))
    script.put("raw/a.csv", "2")
    assert script.rows(**csv(script)) == [("2",)]


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["disable", "pause"])
def test_disable_and_pause_move_nothing(script: Script, option: str) -> None:
    script.put("raw/a.csv", "1")
    for _ in range(2):
        assert script.rows(option, **csv(script)) == [("1",)]
    assert script.rows(**csv(script)) == [("1",)]


def test_read_without_a_context_is_whole_and_says_so_once(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.put("raw/a.csv", "1")
    read = {**csv(script), "transformation_ctx": ""}
    for _ in range(2):
        assert script.rows(**read) == [("1",)]
    assert "has no transformation_ctx, so it has no bookmark" in caplog.text


def test_two_sources_with_one_context_are_an_error(script: Script) -> None:
    script.put("raw/a.csv", "1")

    def twice(context: Any) -> None:
        for _ in range(2):
            context.create_dynamic_frame.from_options(**csv(script))

    with pytest.raises(MisuseError, match="is read twice in one run"):
        script.run(twice)


@pytest.mark.parametrize(
    ("line", "options", "row"),
    [
        pytest.param("1|'a|b'", {"separator": "|", "quoteChar": "'"}, ("1", "a|b"), id="separator-and-quote"),
        pytest.param('1,"a', {"quoteChar": -1}, ("1", '"a'), id="no-quotes"),
        pytest.param('1,"say ""hi"""', {}, ("1", 'say "hi"'), id="doubled-quotes"),
        pytest.param('1,"a\\"b"', {"escaper": "\\"}, ("1", 'a"b'), id="escaper"),
        pytest.param("1,a", {"optimizePerformance": True, "writeHeader": False}, ("1", "a"), id="without-effect"),
    ],
)
def test_csv_options_are_those_of_glue(script: Script, line: str, options: Any, row: tuple[str, str]) -> None:
    script.put("raw/a.csv", line)
    assert script.rows(**csv(script, **options)) == [row]


def test_values_of_csv_may_hold_lines(script: Script) -> None:
    script.put("raw/a.csv", '1,"a', 'b"')
    assert script.rows(**csv(script, multiLine=True)) == [("1", "a\nb")]


def test_first_line_that_names_nothing_is_skipped(script: Script) -> None:
    script.put("raw/a.csv", "made by,x", "1,a")
    script.put("raw/b.csv", "made by,y", "2,b")
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**csv(script, skipFirst=True)).toDF())
    assert frame.columns == ["col0", "col1"]
    assert rows_of(frame) == [("1", "a"), ("2", "b")]


@pytest.mark.parametrize(
    ("first", "second", "rows"),
    [
        pytest.param(["Monthly report", "1,a,x"], ["Monthly report", "2,b,y"], [("1", "a", "x"), ("2", "b", "y")],
                     id="title"),
        pytest.param(["made,by", "1,a"], ["made,by", "2,b,y"], [("1", "a", None), ("2", "b", "y")], id="longer-file"),
        pytest.param(["made,by", "1", "2,b,y"], [], [("1", None, None), ("2", "b", "y")], id="longer-row"),
        pytest.param(["made,by", '1,"a,b",c'], [], [("1", "a,b", "c")], id="quoted"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("option", ["enable", "disable"])
def test_line_that_is_skipped_does_not_say_how_many_columns_there_are(
    script: Script, first: list[str], second: list[str], rows: list[tuple[str | None, ...]], option: str
) -> None:
    script.put("raw/a.csv", *first)
    script.put("raw/b.csv", *second)
    assert script.rows(option, **csv(script, skipFirst=True)) == rows


def test_columns_of_files_that_only_spark_reads_are_counted_with_a_warning(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    (script.root / "raw").mkdir()
    (script.root / "raw/a.csv.bz2").write_bytes(bz2.compress(b"made,by\n1,a\n"))
    assert script.rows(**csv(script, skipFirst=True)) == [("1", "a")]
    assert "give withSchema if rows have more" in caplog.text


def test_columns_of_many_files_are_counted_in_the_newest_with_a_warning(
    script: Script, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_bookmarks.glue.inputs.frames._MOST_HEADS", 1)
    for age_s, (name, row) in enumerate([("b", "2,b,y"), ("a", "1,a")]):
        script.put(f"raw/{name}.csv", "made by", row)
        os.utime(script.root / f"raw/{name}.csv", (1_700_000_000 - age_s,) * 2)
    assert script.rows(**csv(script, skipFirst=True)) == [("1", "a", None), ("2", "b", "y")]
    assert "counted in the newest 1 of 2 files" in caplog.text


def test_first_row_below_a_header_is_not_skipped_without_a_word(script: Script) -> None:
    script.put("raw/a.csv", "n,item", "1,x", "2,y")
    with pytest.raises(GlueUnsupportedError, match="skipFirst together with withHeader"):
        script.rows(**csv(script, withHeader=True, skipFirst=True))


def test_folders_below_are_read_with_recurse_alone(script: Script) -> None:
    script.put("raw/a.csv", "1")
    script.put("raw/deep/er/b.csv", "2")
    assert script.rows(**csv(script)) == [("1",)]
    assert script.rows(**csv(script, {"recurse": "true"})) == [("2",)]


def test_exclusions_are_a_list_in_a_text_and_are_read_once_they_are_lifted(script: Script) -> None:
    script.put("raw/a.csv", "1")
    script.put("raw/b.bak", "2")
    script.put("raw/c.old", "3")
    patterns = json.dumps(["**.bak", script.path("raw", "*.old")])
    assert script.rows(**csv(script, {"exclusions": patterns})) == [("1",)]
    assert script.rows(**csv(script)) == [("2",), ("3",)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"exclusions": "*.bak"}, "a list of texts in JSON", id="exclusions"),
        pytest.param({"boundedFiles": "1", "boundedSize": "1"}, "one run has one bound", id="both-bounds"),
        pytest.param({"boundedFiles": -1}, "boundedFiles=-1", id="negative"),
        pytest.param({"maxBand": "soon"}, "maxBand='soon'", id="no-number"),
        pytest.param({"groupFiles": "byName"}, "groupFiles='byName'", id="groups"),
        pytest.param({"recurse": "maybe"}, "recurse='maybe'", id="no-flag"),
        pytest.param({"jobBookmarkKeys": []}, "jobBookmarkKeys=", id="no-keys"),
        pytest.param({"paths": []}, "paths=", id="no-paths"),
    ],
)
def test_options_with_a_wrong_value_are_errors_before_anything_is_read(
    script: Script, options: dict[str, Any], said: str
) -> None:
    script.put("raw/a.csv", "1")
    with pytest.raises(OptionError, match=said):
        script.rows(**csv(script, options))


@pytest.mark.seldom
def test_bound_reads_a_part_and_later_runs_the_rest(script: Script) -> None:
    for number in range(3):
        script.put(f"raw/{number}.csv", str(number))
    read = csv(script, {"boundedFiles": "2"})
    assert [script.rows(**read) for _ in range(3)] == [[("0",), ("1",)], [("2",)], []]


@pytest.mark.seldom
def test_size_bounds_a_run_as_well(script: Script) -> None:
    for number in range(2):
        script.put(f"raw/{number}.csv", str(number))
    read = csv(script, {"boundedSize": 1})
    assert [script.rows(**read) for _ in range(3)] == [[("0",)], [("1",)], []]


@pytest.mark.seldom
def test_files_within_the_band_are_read_a_few_at_a_time_and_none_is_lost(script: Script) -> None:
    now = time.time()
    for number in range(5):
        path = script.put(f"raw/{number}.csv", str(number))
        os.utime(path, (now - 60 + number, now - 60 + number))
    script.put("raw/old.csv", "old")
    read = csv(script, {"maxFilesInBand": "2", "maxBand": 900_000})
    runs = [script.rows(**read) for _ in range(4)]
    assert runs == [[("0",), ("1",), ("old",)], [("2",), ("3",)], [("4",)], []]


def test_band_of_nothing_bounds_nothing(script: Script) -> None:
    for number in range(3):
        script.put(f"raw/{number}.csv", str(number))
    assert len(script.rows(**csv(script, {"maxFilesInBand": 1, "maxBand": 0}))) == 3


def test_grouping_changes_nothing_of_what_is_read(script: Script) -> None:
    script.put("raw/a.csv", "1")
    options = {"groupFiles": "inPartition", "groupSize": "1048576", "useS3ListImplementation": True}
    assert script.rows(**csv(script, options)) == [("1",)]


def test_unknown_options_are_told_and_counted(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.put("raw/a.csv", "1")
    run = script.glue_run
    assert script.rows(**csv(script, {"nonsense": 1}, alsoNone=2), unknownArgument=3) == [("1",)]
    assert "unknown options alsoNone, nonsense are ignored" in caplog.text
    assert "unknownArgument" in caplog.text
    assert run.counts[("ignored options", "raw")] == 2


def test_bookmark_keys_of_files_are_told_not_to_be_used(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.put("raw/a.csv", "1")
    script.rows(**csv(script, {"jobBookmarkKeys": ["id"], "jobBookmarkKeysSortOrder": "asc"}))
    assert "the bookmark keys ['id'] are not used" in caplog.text


def test_file_name_is_a_column_on_request(script: Script) -> None:
    script.put("raw/a b+c.csv", "1")
    ((row, name),) = script.rows(**csv(script, {"attachFilename": "file"}))
    assert row == "1"
    assert name.endswith("/raw/a b+c.csv")


def test_partition_columns_are_text_as_folders_spell_them(script: Script) -> None:
    script.put("raw/month=01/a.csv", "1")
    script.put("raw/month=02/a.csv", "2")
    assert script.rows(**csv(script)) == [("1", "01"), ("2", "02")]


@pytest.mark.seldom
@pytest.mark.parametrize("predicate", ["month = '02'", "month >= date_format(date '2024-02-01', 'MM')"])
def test_predicate_on_folders_may_use_functions_and_what_it_leaves_out_is_read_later(
    script: Script, predicate: str
) -> None:
    script.put("raw/month=01/a.csv", "1")
    script.put("raw/month=02/a.csv", "2")
    assert script.rows(**csv(script), push_down_predicate=predicate) == [("2", "02")]
    assert script.rows(**csv(script)) == [("1", "01")]


@pytest.mark.seldom
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_columnar_files_keep_their_types(script: Script, format: str) -> None:
    script.spark.createDataFrame([(1, 0.5)], "n long, x double").write.format(format).save(script.path("raw"))
    read = {**csv(script), "format": format}
    assert script.rows(**read) == [(1, 0.5)]
    assert script.rows(**read) == []


def test_format_may_stand_in_the_connection_type(script: Script) -> None:
    script.spark.range(2).write.parquet(script.path("raw"))
    options: dict[str, Any] = {"connection_type": "parquet", "connection_options": {"paths": [script.path("raw")]}}
    assert script.rows(**options, transformation_ctx="raw") == [(0,), (1,)]


def test_source_that_is_got_first_is_read_by_its_frame(script: Script) -> None:
    script.put("raw/a.csv", "1")

    def body(context: Any) -> Any:
        source = context.getSource("file", paths=[script.path("raw")], transformation_ctx="raw")
        source.setFormat("csv")
        return rows_of(source.getFrame())

    assert [script.run(body), script.run(body)] == [[("1",)], []]


@pytest.mark.needs("xml")
def test_xml_is_read_by_the_tag_of_its_rows(script: Script) -> None:
    script.put("raw/a.xml", "<all><row><n>1</n></row><row><n>2</n></row></all>")
    read = {**csv(script, rowTag="row"), "format": "xml"}
    assert script.rows(**read) == [(1,), (2,)]


def test_xml_without_the_tag_of_its_rows_is_refused(script: Script) -> None:
    with pytest.raises(OptionError, match="without rowTag"):
        script.rows(**{**csv(script), "format": "xml"})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        pytest.param("kinesis", "a stream is not part of this layer", id="stream"),
        pytest.param("mongodb", "connection type 'mongodb' is not part", id="connector"),
        pytest.param("custom.jdbc", "connection type 'custom.jdbc' is not part", id="custom"),
        pytest.param("delta", "'delta' is not part of this layer.*Read it with Spark", id="delta"),
        pytest.param("iceberg", r"BookmarkedJob.read\(ctx\).delta\(...\) or .iceberg", id="iceberg"),
        pytest.param("hudi", "connection type 'hudi' is not part", id="hudi"),
    ],
)
def test_connection_types_that_are_out_of_reach_say_what_to_do(script: Script, kind: str, said: str) -> None:
    with pytest.raises(GlueUnsupportedError, match=said):
        script.rows(connection_type=kind, connection_options={})


@pytest.mark.parametrize("format", ["ion", "grokLog", "hudi"])
def test_formats_that_are_out_of_reach_say_what_to_do(script: Script, format: str) -> None:
    with pytest.raises(GlueUnsupportedError, match=f"format '{format}' is not part"):
        script.rows(**{**csv(script), "format": format})


@pytest.mark.parametrize(("format", "said"), [(None, "no format"), ("yaml", "'yaml' is not known")])
def test_no_format_and_an_unknown_one_are_errors(script: Script, format: str | None, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        script.rows(**{**csv(script), "format": format})


def test_folder_that_is_not_there_is_an_error_and_leaves_no_context(script: Script) -> None:
    def body(context: Any) -> None:
        with pytest.raises(SourceError, match="does not exist"):
            context.create_dynamic_frame.from_options(**csv(script, {"paths": [script.path("gone")]}))

    script.run(body)
    script.put("raw/a.csv", "1")
    assert script.rows(**csv(script)) == [("1",)]


@pytest.mark.seldom
def test_folder_that_went_after_it_was_read_counts_as_empty(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    path = script.put("raw/a.csv", "1")
    script.rows(**csv(script))
    path.unlink()
    path.parent.rmdir()
    assert script.rows(**csv(script)) == []
    assert "is not there any more, and counts as empty" in caplog.text
    script.put("raw/b.csv", "2")
    assert script.rows(**csv(script)) == [("2",)]


@pytest.mark.seldom
def test_folder_of_another_day_under_one_context_is_read_and_told(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    for day in ("01", "02"):
        script.put(f"raw/{day}/a.csv", day)
    days = [csv(script, {"paths": [script.path("raw", day)]}) for day in ("02", "01", "02")]
    assert [script.rows(**day) for day in days] == [[("02",)], [("01",)], []]
    assert "its bookmark goes on" in caplog.text


@pytest.mark.seldom
def test_partitions_are_told_in_the_lines_of_glue(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        script.put(f"raw/{number}.csv", str(number))
    with caplog.at_level(logging.INFO):
        script.rows(**csv(script))
        script.put("raw/3.csv", "3")
        script.rows(**csv(script))
        script.rows(**csv(script))
    lines = [
        r.getMessage() for r in caplog.records if r.name in ("HadoopDataSource", "PartitionFilesListerUsingBookmark")
    ]
    assert "with 3 files" in lines[0]
    assert "processing 25.00% of 4 files" in lines[1]
    assert "processing 100.00% of 1 files" in lines[2]
    assert lines[3].startswith("Skipping Partition {} has no new files detected @ ")
