"""Promises FILE-9, FILE-10: what is loaded by patterns and predicates is what Spark itself would read by them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.files.filesystem import paths_and_patterns
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.spark.readers.files import Way
from tests.spark.lake import Lake, OpenSession, lines_of
from tests.thorough import each_once

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FILES = LocalFileSystem()


def put(root: Path, *names: str) -> None:
    """Write files that hold their own names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")


# ---- patterns


LAYOUT = (
    "2013-01/a.csv",
    "2013-01/b.txt",
    "2013-01/_SUCCESS",
    "2013-02/a.csv",
    "2013-02/deep/c.csv",
    "2012-12/a.csv",
    "top.csv",
    "x,y.csv",
    "a{b}.csv",
    "lit*eral/a.csv",
    "k=1/a.csv",
    "k=2/a.csv",
    "k=2/j=3/a.csv",
    "m/2013-03/a.csv",
    "p/k=1/a.csv",
    "p/k=2/a.csv",
    "q/k=3/a.csv",
)
PATTERNS = [
    "2013-*/*.csv",
    "2013-*",
    "2013-*/",
    "*/*",
    "2013-0[12]",
    "2013-0[^1]",
    "2013-0[!1]",
    "2013-0[1-2]/a*",
    "[2-2]013-01/a.csv",
    "{2013-01,m/2013-03}",
    "{2013-01,nothing/2013-03}",
    "{nothing/deep,m/2013-03}/*.csv",
    "{2013-01,m/2013-03}/b*",
    "{nothing/deep,nothing/else}/*.csv",
    "{2013-01,m/2013-03}/nothing*",
    "2013-{01,02}/{a,b}.*",
    "{2012-12/a,2013-01/*}.csv",
    "*.csv",
    "?op.csv",
    "*x*",
    "x?y*",
    "k=*/*",
    "k=*/j=*",
    "k=[1]",
    "p/*",
    "{p,}/k=1",
    "*/a.csv",
    "2013-01/**",
    "**/a.csv",
    "lit\\*eral",
    "lit\\*e*",
    "a\\{b\\}.c*",
    "nothing*",
    "2013-01/a.csv/*",
]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("patterns") / "lake"
    put(root, *LAYOUT)
    return root


def read_by_spark(spark: SparkSession, path: str, recursive: bool) -> tuple[list[str], list[str]] | None:
    """Return the lines and the partition columns that Spark reads; None where nothing matches."""
    try:
        frame = spark.read.option("recursiveFileLookup", recursive).text(path)
        return lines_of(frame.select("value")), frame.columns[1:]
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):  # only what Spark can read is compared
            raise
        return None


@pytest.mark.parametrize(("pattern", "recursive"), each_once(PATTERNS, [False, True]))
def test_pattern_reads_the_files_that_spark_reads_by_it(
    shared_spark: SparkSession, layout: Path, pattern: str, recursive: bool
) -> None:
    by_spark = read_by_spark(shared_spark, f"{layout}/{pattern}", recursive)
    named, globs = paths_and_patterns(FILES, [f"{layout}/{pattern}"])
    source = FileSource(FILES, named, FileOptions(recursive=recursive), globs=globs)

    if by_spark is None:
        with pytest.raises(SourceMissingError, match="matches"):
            source.plan(PlanInput())
        return
    expected, columns = by_spark
    plan = source.plan(PlanInput())

    assert sorted(path.removeprefix(f"{layout}/") for path in plan.files.paths) == sorted(expected)
    assert list(plan.partition_types) == columns


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_pattern_is_read_exactly_in_both_ways(lake: Lake, way: Way) -> None:
    put(lake.root / "raw", *LAYOUT)

    with lake.job() as job:
        reader = job.read("raw").files(read_by=way).format("text")
        frame = reader.load(lake.path("raw", "2013-*/*.csv"))
        assert lines_of(frame) == ["2013-01/a.csv", "2013-02/a.csv"]


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_alternatives_are_read_in_both_ways_where_one_is_missing(lake: Lake, way: Way) -> None:
    put(lake.root / "raw", "2013-01/a.csv", "m/2013-02/a.csv")

    with lake.job() as job:
        reader = job.read("raw").files(read_by=way).format("text")
        frame = reader.load(lake.path("raw", "{2013-01,m/2013-02,old/2013-03}"))
        assert lines_of(frame) == ["2013-01/a.csv", "m/2013-02/a.csv"]


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_partition_columns_appear_below_what_a_pattern_matches_also_where_spark_refuses(lake: Lake, way: Way) -> None:
    put(lake.root / "raw", "eu/k=1/a.csv", "eu/k=2/a.csv", "us/k=3/a.csv", "asia/k=x/a.csv")

    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).format("text").load(lake.path("raw", "[eu]*"))
        assert frame.dtypes == [("value", "string"), ("k", "int")]
        assert sorted(row.k for row in frame.collect()) == [1, 2, 3]


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_pattern_that_matches_files_and_folders_beside_them_loses_neither(lake: Lake, way: Way) -> None:
    put(lake.root / "raw", "a.csv", "k=1/a.csv", "plain/b.csv")

    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).format("text").load(lake.path("raw", "*"))
        assert lines_of(frame) == ["a.csv", "k=1/a.csv", "plain/b.csv"]


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_files_that_match_are_read_beside_a_partition_that_does_not(lake: Lake, way: Way) -> None:
    # Spark alone, told to read the folder, would take k for a column and drop what lies beside the partition.
    put(lake.root / "raw", "a.csv", "b.csv", "k=1/other.txt")

    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).format("text").load(lake.path("raw", "*.csv"))
        assert lines_of(frame) == ["a.csv", "b.csv"]


@pytest.mark.seldom
@pytest.mark.needs("listing once")
@pytest.mark.parametrize("recursive", [False, True])
def test_thousand_folders_that_match_are_one_read(
    lake: Lake, caplog: pytest.LogCaptureFixture, recursive: bool
) -> None:
    put(lake.root / "raw", *(f"{day:04d}/{name}.csv" for day in range(300) for name in "ab"))
    put(lake.root / "raw", "0001/not this.txt")
    caplog.set_level(logging.INFO)

    with lake.job() as job:
        reader = job.read("raw").format("text").option("recursiveFileLookup", recursive)
        frame = reader.load(lake.path("raw", "*", "*.csv"))
        assert lines_of(frame) == sorted(f"{day:04d}/{name}.csv" for day in range(300) for name in "ab")

    assert "reading by directory, 600 files of 600 listed" in caplog.text


def test_pattern_reads_each_file_once_and_new_folders_that_match(lake: Lake) -> None:
    def run() -> list[str]:
        with lake.job() as job:
            return lines_of(job.read("raw").format("text").load(lake.path("raw", "2013-*", "*.csv")))

    put(lake.root / "raw", "2013-01/a.csv", "2012-12/a.csv")
    assert run() == ["2013-01/a.csv"]

    put(lake.root / "raw", "2013-02/a.csv", "2013-02/b.txt", "2012-11/a.csv")

    assert run() == ["2013-02/a.csv"]
    assert run() == []
    state = lake.head().contexts["raw"]
    assert state.fingerprint == f"files:{lake.root}/raw/2013-*/*.csv"


def test_pattern_that_matches_nothing_any_more_is_an_empty_increment(lake: Lake) -> None:
    put(lake.root / "raw", "2013-01/a.csv")
    pattern = lake.path("raw", "2013-*")
    with lake.job() as job:
        assert lines_of(job.read("raw").format("text").load(pattern)) == ["2013-01/a.csv"]
    (lake.root / "raw/2013-01").rename(lake.root / "raw/done-2013-01")

    with lake.job() as job:
        assert lines_of(job.read("raw").format("text").load(pattern)) == []


def test_name_that_looks_like_a_pattern_and_is_there_is_read_by_its_name(lake: Lake) -> None:
    put(lake.root / "raw", "day[1]/a.csv", "day1/a.csv")

    with lake.job() as job:
        assert lines_of(job.read("raw").format("text").load(lake.path("raw", "day[1]"))) == ["day[1]/a.csv"]


def test_output_where_a_pattern_reads_is_refused_and_beside_it_is_not(lake: Lake) -> None:
    put(lake.root, "raw-1/a.csv")
    with pytest.raises(OptionError, match="its own input"), lake.job() as job:
        job.write(job.read("raw").format("text").load(lake.path("raw-*")), "within").text(lake.path("raw-2"))
    with lake.job() as job:
        job.write(job.read("raw").format("text").load(lake.path("raw-*")), "beside").text(lake.path("clean"))


# ---- names


@pytest.mark.parametrize("way", ["paths", "directory"])
@pytest.mark.parametrize("count", [3, 250], ids=["few excluded", "more excluded than Spark is told"])
def test_excluded_files_are_not_read_counted_and_read_once_they_are_let_in(lake: Lake, way: Way, count: int) -> None:
    put(lake.root / "raw", "k=1/a.csv", "k=1/b.csv", *(f"k=1/{i}.bak" for i in range(count)))

    def run(*exclusions: str) -> list[str]:
        with lake.job() as job:
            return lines_of(lake.read(job, exclusions=exclusions, read_by=way))

    with lake.job(option="pause") as job:
        lake.read(job, exclusions=["k=1/*.bak"])
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"excluded": count}

    assert run("k=1/*.bak") == ["k=1/a.csv", "k=1/b.csv"]
    assert run("k=1/*.bak") == []
    assert run() == sorted(f"k=1/{i}.bak" for i in range(count))


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_excluded_partition_says_nothing_about_the_type_of_its_column(lake: Lake, way: Way) -> None:
    put(lake.root / "raw", "k=1/a.csv", "k=2/b.csv", "k=tmp/c.csv")

    with lake.job() as job:
        frame = lake.read(job, exclusions=["k=tmp/**"], read_by=way)
        assert sorted((row.value, row.k) for row in frame.collect()) == [("k=1/a.csv", 1), ("k=2/b.csv", 2)]


@pytest.mark.parametrize("way", ["paths", "directory"])
@pytest.mark.parametrize("pattern", ["*.csv", "[ab]*", "{a,c}.*", "?.txt"])
def test_path_glob_filter_reads_what_spark_reads_by_it(lake: Lake, way: Way, pattern: str) -> None:
    put(lake.root / "raw", "a.csv", "b.csv", "a.txt", "c.txt", "long.txt")
    expected = lake.spark.read.option("pathGlobFilter", pattern).text(lake.path("raw"))

    with lake.job() as job:
        reader = job.read("raw").files(read_by=way).format("text").option("pathGlobFilter", pattern)
        assert lines_of(reader.load(lake.path("raw"))) == lines_of(expected)


# ---- predicates


SAMPLES = {
    "numbers": (
        *(f"year={y}/month={m}" for y in ("2012", "2013") for m in ("09", "9", "10", "1")),
        "year=2013/month=__HIVE_DEFAULT_PARTITION__",
        "year=-5/month=12",
    ),
    "texts": (
        *(f"region={r}/code={c}" for r in ("eu", "EU", "u%2Fs", "x_y", "__HIVE_DEFAULT_PARTITION__") for c in "ab"),
        "region=100%25/code=c",
        "region=%FF/code=c",
        "region=S%C3%A3o/code=c",
        "region=it's/code=c",
    ),
    "dates": tuple(f"day={d}" for d in ("2013-01-31", "2012-12-31", "2013-02-01", "__HIVE_DEFAULT_PARTITION__")),
}
PREDICATES = {
    "numbers": [
        "year = 2013",
        "YEAR=2013 and Month>=9",
        "`year` == 2013 or month < 9",
        "month >= 9",
        "month = '09'",
        "month >= '9'",
        "month > 8.5 and month < 10.",
        "month != 9",
        "month <> 10 or year = 2012",
        "month <=> null",
        "not month <=> 9",
        "month is null",
        "month is not null and year > 0",
        "month in (1, '10', 99)",
        "month not in (1, 10)",
        "month not in (1, null)",
        "month in (9, null)",
        "year between 2012 and 2012",
        "year not between -10 and 2012",
        "not (year = 2013 and month = 9)",
        "not year = 2013",
        "! (year = 2013) or year = 2013",
        "2013 <= year",
        "month = year",
        "year = -5",
        "year > - 6 and year < +0",
        "month like '1%'",
        "month not like '1%'",
        "(year = 2013 or year = 2012) and (month = 10 or month is null)",
        "year = 2013 or month = 12 and year = 2012",
        "month = null",
        "null = null",
        "year = 9999999999",
    ],
    "texts": [
        "region = 'eu'",
        'region = "eu"',
        "region > 'a'",
        "region >= 'EU' and code <> 'b'",
        "region in ('eu', 'u/s')",
        "region not in ('eu')",
        "region like 'e%'",
        "region like '_u'",
        "region like 'x\\_y'",
        "region like '100\\%'",
        "region like 'x!_y' escape '!'",
        "region like '%'",
        "not region like 'e%'",
        "region is null",
        "region <=> 'eu'",
        "region = 'it\\'s'",
        "region = 'ÿ'",
        "region = 'São'",
        "region = 'SÃ£o'",
        "region > 'z'",
        "region in ('\\u00ff', '\\145u', '\\u0045\\U00000055')",
        "region like 'S\\u00c3\\243o'",
        "region like 'S\\303\\u0025'",
        "region like 'S\\u00C3\\u0025'",
        "code between 'a' and 'b'",
        "code < region",
    ],
    "dates": [
        "day = '2013-01-31'",
        "day >= date '2013-01-01'",
        "day < DATE'2013-02'",
        "day > '2013'",
        "day in (date '2013-02-01', '2012-12-31')",
        "day between '2012-12-31' and '2013-01-31'",
        "day like '2013%'",
        "day is null",
        "day != '2013-01-31'",
    ],
}
GIVEN = {
    "": SAMPLES.keys(),
    "month string": ["numbers"],
    "month double, year bigint": ["numbers"],
    "month decimal(4,1)": ["numbers"],
    "day string": ["dates"],
}
# `make test` asks each predicate with the types that are found, and some of them with types that are given.
CASES = [
    pytest.param(sample, given, text, marks=pytest.mark.thorough if given and at % 6 else ())
    for given, samples in GIVEN.items()
    for sample in samples
    for at, text in enumerate(PREDICATES[sample])
]


@pytest.fixture(scope="module")
def partitions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("partitions")
    for name, folders in SAMPLES.items():
        put(root / name, *(f"{folder}/a.txt" for folder in folders))
    return root


@pytest.fixture(scope="module")
def ansi_spark(open_session: OpenSession) -> SparkSession:
    """Open a session that compares as the standard has it, which is the default from Spark 4.0 on."""
    session = open_session()
    session.conf.set("spark.sql.ansi.enabled", "true")
    return session


@pytest.mark.parametrize(("sample", "given", "text"), CASES)
def test_predicate_lets_in_what_sparks_where_lets_in(
    ansi_spark: SparkSession, partitions: Path, sample: str, given: str, text: str
) -> None:
    root = str(partitions / sample)
    schema = ansi_spark.createDataFrame([], given).schema if given else None
    named = {field.name: field.dataType.simpleString() for field in schema or ()}
    types = FileSource(FILES, [root], named=named).plan(PlanInput()).partition_types
    columns = ", ".join(f"{name} {named.get(name, kind)}" for name, kind in types.items())
    frame = ansi_spark.read.format("text").schema(f"value string, {columns}").load(root)
    try:
        expected = lines_of(frame.where(text).select("value"))
    except PySparkException:
        expected = None
    first, later = PlanInput(), PlanInput(partition_types=types)

    for found in (first, later):
        source = FileSource(FILES, [root], FileOptions(partition_filter=text), named=named)
        if expected is None:
            with pytest.raises(OptionError, match="can't be evaluated"):
                source.plan(found)
            continue
        plan = source.plan(found)
        assert sorted(path.removeprefix(f"{root}/") for path in plan.files.paths) == sorted(expected)
        assert plan.partition_types == types or plan.is_empty


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_partition_let_in_later_brings_its_unread_files(lake: Lake, way: Way) -> None:
    put(lake.root / "raw", *(f"month={month:02d}/a.txt" for month in (9, 10, 11)))

    def run(text: str | None) -> list[str]:
        with lake.job() as job:
            frame = lake.read(job, partition_filter=text, read_by=way)
            assert frame.dtypes == [("value", "string"), ("month", "int")]
            return lines_of(frame.select("value"))

    assert run("month >= 10") == ["month=10/a.txt", "month=11/a.txt"]
    put(lake.root / "raw", "month=09/b.txt", "month=10/b.txt")
    assert run("month = 10") == ["month=10/b.txt"]
    assert run(None) == ["month=09/a.txt", "month=09/b.txt"]


def test_pruned_partitions_are_counted_and_not_listed(lake: Lake) -> None:
    put(lake.root / "raw", *(f"year={y}/month={m}/a.txt" for y in (2012, 2013) for m in range(1, 13)))
    with lake.job() as job:
        lake.read(job, partition_filter="year = 2013 and month >= 9")

    (run,) = lake.store.runs("copy")
    figures = run.plans["raw"].stats

    assert figures["listed"] == 4
    assert figures["partitions"] == {"listed": 4, "pruned": 1 + 8, "skipped": 0}


def test_options_of_selection_are_no_options_of_an_upstream(lake: Lake) -> None:
    with lake.job() as job, pytest.raises(OptionError, match="exclusions, partition_filter: an option of files"):
        job.read("raw").files(partition_filter="k = 1", exclusions=["*.bak"]).upstream("other")
