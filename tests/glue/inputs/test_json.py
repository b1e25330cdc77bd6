"""JSON as scripts read it: by lines, by documents, behind each other, in arrays, and in arrays within documents."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.inputs.documents import Documents
from tests.glue.running import Script, Tables, rows_of

pytestmark = pytest.mark.spark


def json(script: Script, **format_options: Any) -> dict[str, Any]:
    return {
        "connection_type": "file",
        "format": "json",
        "transformation_ctx": "raw",
        "connection_options": {"paths": [script.path("raw")]},
        "format_options": format_options,
    }


@pytest.mark.parametrize(
    ("text", "path", "records"),
    [
        pytest.param('{"a":1}', (), ['{"a":1}'], id="one"),
        pytest.param('{"a":1}{"a":2} {"a":3}', (), ['{"a":1}', '{"a":2}', '{"a":3}'], id="behind-each-other"),
        pytest.param('{"a":"x} {y"}{"a":"\\"}{"}', (), ['{"a":"x} {y"}', '{"a":"\\"}{"}'], id="within-quotes"),
        pytest.param('[{"a":1},{"a":[2]}]', (), ['{"a":1}', '{"a":[2]}'], id="array"),
        pytest.param('[{"a":1}][{"a":2}]', (), ['{"a":1}', '{"a":2}'], id="arrays"),
        pytest.param('{"r":{"s":[{"a":1},{"a":2}]}}', ("r", "s"), ['{"a":1}', '{"a":2}'], id="path"),
        pytest.param('{"r":1}', ("r", "s"), [], id="path-that-is-not-there"),
        pytest.param("  ", (), [], id="blank"),
    ],
)
def test_records_of_a_text_are_told_apart(script: Script, text: str, path: tuple[str, ...], records: list[str]) -> None:
    frame = script.spark.createDataFrame([(text, "p")], "value string, part string")
    assert [(row[0].strip(), row[1]) for row in Documents(path).records_of(frame).collect()] == [
        (each, "p") for each in records
    ]


@pytest.mark.seldom
def test_lines_of_several_records_stand_among_lines_of_one(script: Script) -> None:
    script.put("raw/a.json", '{"n": 1}', '{"n": 2}{"n": "three"} {"n": 4', '[{"n": 5}, 6]', '{"n": 7')

    def told(context: Any) -> tuple[int, list[str], int]:
        frame = context.create_dynamic_frame.from_options(**json(script))
        values = [str(value) for row in frame.toDF().select("n.*").collect() for value in row if value is not None]
        return frame.count(), sorted(values), frame.errorsCount()

    assert script.run(told) == (4, ["1", "2", "5", "three"], 3)


@pytest.mark.seldom
@pytest.mark.parametrize(
    "behind",
    ["xyz", ',{"n": 2}', ',"n": 2}', '"n": 2}', "5", '{"n": 2', "]"],
    ids=["text", "comma", "field", "torn", "number", "cut", "end"],
)
def test_what_stands_behind_a_record_is_never_passed_over(script: Script, behind: str) -> None:
    script.put("raw/a.json", '{"n": 1}' + behind, '{"n": 3}')

    def told(context: Any) -> tuple[list[Any], int]:
        frame = context.create_dynamic_frame.from_options(**json(script))
        return sorted(row[0] for row in frame.toDF().select("n").collect()), frame.errorsCount()

    # Behind each other both are read, of which the second is cut off here.
    assert script.run(told) == (([1, 3], 1) if behind == '{"n": 2' else ([3], 1))


def test_empty_object_is_a_record(script: Script) -> None:
    script.put("raw/a.json", "{}", '{"n": 1}', " { } ")
    assert sorted(script.rows(**json(script)), key=str) == [(1,), (None,), (None,)]


@pytest.mark.seldom
def test_lines_of_an_array_end_with_a_comma(script: Script) -> None:
    script.put("raw/a.json", "[", '{"n": 1},', '{"n": 2} , ', '{"n": 3}', "]")

    def told(context: Any) -> tuple[list[Any], int]:
        frame = context.create_dynamic_frame.from_options(**json(script))
        return sorted(row[0] for row in frame.toDF().select("n").collect()), frame.errorsCount()

    assert script.run(told) == ([1, 2, 3], 2)


@pytest.mark.seldom
def test_lines_are_records_and_only_new_files_are_read(script: Script) -> None:
    script.put("raw/a.json", '{"n": 1}', '{"n": 2}', "")
    assert script.rows(**json(script)) == [(1,), (2,)]
    script.put("raw/b.json", '{"n": 3}')
    assert [script.rows(**json(script)), script.rows(**json(script))] == [[(3,)], []]


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["disable", "pause"])
def test_runs_that_move_nothing_read_all_of_it_again(script: Script, option: str) -> None:
    script.put("raw/a.json", '{"n": 1}')
    for _ in range(2):
        assert script.rows(option, **json(script)) == [(1,)]


@pytest.mark.seldom
def test_documents_over_several_lines_are_read_with_multiline(script: Script) -> None:
    script.put("raw/a.json", "[", ' {"n": 1},', ' {"n": 2}', "]")
    script.put("raw/b.json", "{", '  "n": 3', "}", "{", '  "n": 4', "}")
    assert script.rows(**json(script, multiline=True)) == [(1,), (2,), (3,), (4,)]


@pytest.mark.seldom
def test_path_leads_to_the_array_of_records(script: Script) -> None:
    script.put("raw/a.json", '{"id": 7, "orders": {"list": [{"n": 1}, {"n": 2}]}}')
    assert script.rows(**json(script, jsonPath="$.orders.list[*]")) == [(1,), (2,)]


@pytest.mark.seldom
def test_documents_that_are_no_json_are_error_records_where_a_path_leads_into_them(script: Script) -> None:
    texts = ['{"list": [{"n": 1}]}', '{"list": [{"n": 2}, {"n"', '{"other": 3}', '{"list": null}', "torn"]
    for number, text in enumerate(texts):
        script.put(f"raw/{number}.json", text)

    def told(context: Any) -> tuple[list[Any], int]:
        frame = context.create_dynamic_frame.from_options(**json(script, jsonPath="$.list[*]"))
        return sorted(row[0] for row in frame.toDF().select("n").collect()), frame.errorsCount()

    assert script.run(told) == ([1], 2)


@pytest.mark.parametrize("path", ["$.a[0]", "$..b", "$.a.b", "$.a[*].b"])
def test_other_paths_are_out_of_reach(script: Script, path: str) -> None:
    script.put("raw/a.json", '{"n": 1}')
    with pytest.raises(GlueUnsupportedError, match="jsonPath="):
        script.rows(**json(script, jsonPath=path))


def test_values_of_several_types_are_a_choice(script: Script) -> None:
    script.put("raw/a.json", '{"n": 1}', '{"n": "one"}')
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**json(script)).toDF())
    assert set(frame.select("n.*").columns) == {"int", "string"} or set(frame.select("n.*").columns) == {
        "long",
        "string",
    }


def test_partition_columns_and_names_of_files_go_along(script: Script) -> None:
    script.put("raw/year=2024/month=01/a.json", '{"n": 1}')
    read = json(script)
    read["connection_options"]["attachFilename"] = "file"
    ((n, year, month, file),) = script.rows(**read)
    assert (n, year, month) == (1, "2024", "01")
    assert file.endswith("/year=2024/month=01/a.json")


def test_value_of_a_partition_is_taken_in_place_of_a_field(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.put("raw/dt=2024-01-01/a.json", '{"n": 1, "dt": "other"}')
    script.put("raw/dt=2024-01-02/a.json", '{"n": 2}')
    assert script.rows(**json(script)) == [(1, "2024-01-01"), (2, "2024-01-02")]
    assert caplog.text.count("raw: the records have fields with the names of partitions, or of the column of") == 1
    assert "file names: dt." in caplog.text


@pytest.mark.seldom
def test_value_of_a_partition_of_a_catalog_is_taken_in_place_of_a_field(script: Script, tables: Tables) -> None:
    tables.add("orders", script.path("raw"), {"n": "int"}, serde="json", keys={"dt": "date"})
    script.put("raw/dt=2024-01-01/a.json", '{"n": 1, "dt": "other"}')
    tables.add_partition("orders", script.path("raw/dt=2024-01-01"), "2024-01-01")
    [(n, day)] = script.table_rows(database=tables.database, table_name="orders", transformation_ctx="raw")
    assert (n, str(day)) == (1, "2024-01-01")


def test_partition_called_as_the_text_that_is_parsed_is_an_error(script: Script) -> None:
    script.put("raw/value=1/a.json", '{"n": 1}')
    with pytest.raises(BookmarkError, match="'value'"):
        script.rows(**json(script))


@pytest.mark.seldom
def test_types_of_an_empty_increment_are_those_of_the_last_run(script: Script) -> None:
    script.spark.conf.set("spark.bookmarks.glue.empty_columns", "true")
    script.put("raw/a.json", '{"n": 1, "x": {"y": "z"}}')
    script.rows(**json(script))
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**json(script)).toDF())
    assert (frame.columns, rows_of(frame)) == (["n", "x"], [])


def test_source_that_never_had_a_file_is_empty_and_has_no_columns(script: Script) -> None:
    (script.root / "raw").mkdir()
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**json(script)))
    assert (frame.count(), frame.toDF().columns) == (0, [])
