"""What the inventory says of a script, read from its source: supported, needs a word, out of reach."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.inventory.finding import ScriptFinding
from airflow_bookmarks.glue.inventory.reading import ScriptNeeds, exported, read_script
from airflow_bookmarks.glue.inventory.report import inventory
from airflow_bookmarks.glue.inventory.surface import Support

HEAD = """
import sys
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext
from awsglue.context import GlueContext
from awsglue.job import Job
args = getResolvedOptions(sys.argv, ["JOB_NAME", "target"])
glueContext = GlueContext(SparkContext())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)
"""
BODY = """
orders = glueContext.create_dynamic_frame.from_catalog(
    database="shop", table_name="orders", transformation_ctx="orders",
    additional_options={"jobBookmarkKeys": ["id"], "jobBookmarkKeysSortOrder": "asc"},
)
mapped = orders.apply_mapping([("id", "long", "id", "long")])
glueContext.write_dynamic_frame.from_options(
    frame=mapped, connection_type="s3", connection_options={"path": args["target"]}, format="glueparquet",
)
job.commit()
"""


def needs(body: str, head: str = HEAD) -> ScriptNeeds:
    return read_script(f"{head}{dedent(body)}")


def told(body: str, head: str = HEAD) -> list[tuple[Support, str, str]]:
    """Return what has to be looked at of a script that commits."""
    found = needs(f"{dedent(body)}\njob.commit()\n", head).findings
    return [(each.support, each.what, each.note) for each in found if each.support is not Support.YES]


def test_plain_script_is_supported_with_its_arguments_and_contexts() -> None:
    found = needs(BODY)
    assert found.verdict is Support.YES, [each for each in found.findings if each.support is not Support.YES]
    assert found.arguments == ("JOB_NAME", "target")
    assert found.contexts == ("orders",)
    assert [each.what for each in found.findings][-5:] == [
        "Job.init",
        "create_dynamic_frame.from_catalog",
        "apply_mapping",
        "write_dynamic_frame.from_options",
        "Job.commit",
    ]


def test_finding_has_the_line_of_its_call() -> None:
    text = "x = 1\nglueContext.start_transaction(False)\n"
    (found,) = read_script(text).findings
    assert (found.line, found.support) == (2, Support.NO)


WORDS = {
    "no ctx": ('glueContext.create_dynamic_frame.from_catalog("shop", "orders")', "no transformation_ctx"),
    "empty ctx": (
        'glueContext.create_dynamic_frame.from_catalog("a", "b", transformation_ctx="")',
        "no transformation_ctx",
    ),
    "dynamodb": (
        'glueContext.create_dynamic_frame.from_options("dynamodb", {"name": "a"}, transformation_ctx="a")',
        "read whole in each run",
    ),
    "a connection type of an argument": (
        'glueContext.create_dynamic_frame.from_options(args["kind"], {}, transformation_ctx="a")',
        "known when it runs",
    ),
    "data frame": ('glueContext.create_data_frame.from_catalog("shop", "orders")', "read whole in each run"),
    "sample query": (
        'glueContext.create_dynamic_frame.from_options("mysql", {"sampleQuery": "select 1"}, transformation_ctx="a")',
        "sampleQuery",
    ),
    "a write to Redshift": (
        'glueContext.write_dynamic_frame.from_options(a, "redshift", {"dbtable": "a"})',
        "an error without redshift_tmp_dir",
    ),
    "a write to Oracle": (
        'glueContext.write_dynamic_frame.from_options(a, "oracle", {"dbtable": "a"})',
        "can't be part of the commit",
    ),
    "a load into Redshift after a TRUNCATE": (
        'glueContext.write_dynamic_frame.from_jdbc_conf(a, "dw", {"preactions": "truncate table a"}, "s3://tmp/a")',
        "Write DELETE FROM",
    ),
    "a load into Redshift with an option that leaves rows out": (
        'glueContext.write_dynamic_frame.from_options(a, "redshift", '
        '{"redshiftTmpDir": "s3://tmp/a", "extracopyoptions": "MAXERROR 10"})',
        "extracopyoptions",
    ),
    "purge": ('glueContext.purge_s3_path("s3://lake/raw", {"retentionPeriod": 1})', "part of the commit"),
    "Spark's read": ('spark.read.parquet("s3://lake/raw")', "no bookmark"),
    "Spark's SQL": ('spark.sql("select * from shop.orders")', "Spark's own catalog"),
    "JVM": ("sc._jsc.hadoopConfiguration()", "Spark's JVM"),
    "Glue's API": ('import boto3\nboto3.client("glue")', "Glue's own API"),
    "a package": ("import pandas", "ship it with the script"),
    "a name of its own": ('job.init("nightly", args)', "bookmark_job"),
    "a name by an expression": ('job.init(args["JOB_NAME"] + "_a", args)', "bookmark_job"),
}
OUT = {
    "stream": ("glueContext.forEachBatch(frame, work)", "readStream"),
    "kafka": ('glueContext.create_data_frame.from_options(connection_type="kafka")', "readStream"),
    "connector": (
        'glueContext.getSource(connection_type="custom.jdbc", transformation_ctx="a")',
        "Spark's own connector",
    ),
    "mongodb": (
        'glueContext.create_dynamic_frame.from_options("mongodb", {}, transformation_ctx="a")',
        "Spark's own connector",
    ),
    "a write to DynamoDB": (
        'glueContext.write_dynamic_frame.from_options(a, "dynamodb", {})',
        "can be read here, and not written",
    ),
    "a format that is set later": ('sink.setFormat("ion")', "'ion' is not part"),
    "format": ('glueContext.create_dynamic_frame.from_options("s3", {}, "grokLog", transformation_ctx="a")', "grokLog"),
    "storage class": ('glueContext.transition_s3_path("s3://lake/raw", "GLACIER")', "lifecycle rule"),
    "data quality": ("from awsgluedq.transforms import EvaluateDataQuality", "in Glue alone"),
    "a transform of Studio": ("import gs_derived", "frame.toDF()"),
    "a module": ("from awsglue.blueprint import x", "not part of this layer"),
    "a name of a module": ("from awsglue.job import Jobs", "Jobs of it"),
    "a member of the context": ("glueContext.no_such_call()", "not part of this layer"),
    "Glue's JVM": ("glueContext._jvm.com.amazonaws", "not here"),
    "a jsonPath that chooses": (
        'glueContext.create_dynamic_frame.from_options("s3", {}, "json", {"jsonPath": "$.a[0]"}, "a")',
        "paths such as",
    ),
    "a type that is none": (
        'ApplyMapping.apply(frame=a, mappings=[("a", "long", "a", "long"), ("b", "string", "b", "number")])',
        "no type is called 'number': the mapping of 'b'",
    ),
    "a type that is none, by the method": ('a.apply_mapping([("b", "string", "b", "text")])', "'text'"),
    "two bounds": (
        'glueContext.getSource("s3", transformation_ctx="a", additional_options={"boundedFiles": 1, "boundedSize": 1})',
        "excludes",
    ),
    "two sources with one ctx": (
        'glueContext.create_dynamic_frame.from_catalog("a", "b", transformation_ctx="c")\n'
        'glueContext.create_dynamic_frame.from_catalog("a", "d", transformation_ctx="c")',
        "two sources need two names",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_word_is_needed(name: str) -> None:
    body, why = WORDS[name]
    (found,) = told(body)
    assert found[0] is Support.WORD
    assert why in found[2]


@pytest.mark.parametrize("name", OUT)
def test_call_is_out_of_reach(name: str) -> None:
    body, why = OUT[name]
    support, _, note = told(body)[-1]
    assert support is Support.NO
    assert why in note


FINE = {
    "a constant": 'KIND = "s3"\nglueContext.create_dynamic_frame.from_options(KIND, {}, "csv", transformation_ctx="a")',
    "contexts made in a loop": (
        'for name in ["a", "b"]:\n'
        '    glueContext.create_dynamic_frame.from_catalog("shop", name, transformation_ctx=f"ctx_{name}")'
    ),
    "options behind two stars": "glueContext.create_dynamic_frame.from_catalog(**how)",
    "transforms": "from awsglue.utils import getResolvedOptions\nApplyMapping.apply(frame=a, mappings=[])",
    "types of a mapping": (
        'a.apply_mapping([("a", "array", "a", "Array<string>"), ("b", "x", "b", "DECIMAL(3,1)"), ("c", "d"), more])'
    ),
    "SQL over a view of the script": (
        'a.createOrReplaceTempView("orders")\nspark.sql("select * from `orders` o join orders p")'
    ),
    "the context's SQL": 'glueContext.sql("select 1")',
    "a ctx of a source and a transform": (
        'a = glueContext.create_dynamic_frame.from_catalog("a", "b", transformation_ctx="c")\n'
        'a.apply_mapping([], transformation_ctx="c")'
    ),
    "a load into Redshift": (
        'glueContext.write_dynamic_frame.from_jdbc_conf(a, "dw", {"dbtable": "a", "aws_iam_role": args["role"], '
        '"postactions": "begin; delete from b using a; end"}, redshift_tmp_dir=args["TempDir"])'
    ),
    "a load into Redshift by its options": (
        'glueContext.write_dynamic_frame.from_options(a, "redshift", '
        '{"dbtable": "a", "redshiftTmpDir": args["TempDir"]})'
    ),
    "Watermarks": "from scripts.helpers.watermarks import Watermarks",
}


@pytest.mark.parametrize("name", FINE)
def test_nothing_has_to_be_looked_at(name: str) -> None:
    assert told(FINE[name]) == []


# ---- what runs, and may lose or double rows

WRITE = 'glueContext.write_dynamic_frame.from_options(a, "s3", {"path": args["target"]}, "csv")'
SPARK_WRITES = {
    "a file": ('df.write.mode("append").partitionBy("day").parquet(path)', "write.parquet"),
    "after toDF": ("a.toDF().write.save(path)", "write.save"),
    "a table": ('df.write.saveAsTable("a.b")', "write.saveAsTable"),
    "rows of a table": ('df.write.insertInto("a.b")', "write.insertInto"),
    "a database": ("df.write.jdbc(url, table)", "write.jdbc"),
    "the newer writer": ('df.writeTo("a.b").append()', "writeTo"),
    "a writer that a variable holds": ('writer = df.write.mode("append")\nwriter.save(path)', "write"),
    "a statement": ('spark.sql("INSERT INTO a SELECT * FROM b")', "spark.sql"),
    "a statement with what a run knows": ('spark.sql(f"""\n  MERGE INTO {table} USING new ON true""")', "spark.sql"),
    "a statement that makes a table": ('spark.sql("create table a using parquet as select 1")', "spark.sql"),
    "a statement behind a with": ('spark.sql("with b as (select 1) insert into a select * from b")', "spark.sql"),
    "a statement that is formatted": ('spark.sql("insert overwrite {} select 1".format(table))', "spark.sql"),
}


@pytest.mark.parametrize("name", SPARK_WRITES)
def test_write_by_spark_is_told_once_with_its_line(name: str) -> None:
    body, what = SPARK_WRITES[name]
    (found,) = [each for each in needs(f"x = 1\n{body}").findings if "not part of the commit" in each.note]
    assert (found.line, found.support, found.what) == (HEAD.count("\n") + 2, Support.WORD, what)
    assert "glueContext.write_dynamic_frame" in found.note


@pytest.mark.parametrize(
    "body",
    [
        'with open("a") as file:\n    file.write("a")',
        "frame.writeStream.start()",
        'spark.sql("select inserted from a")',
        'spark.sql(f"drop table {name}")',
        "self.write = True",
        WRITE,
    ],
)
def test_what_is_no_write_by_spark_is_not_told(body: str) -> None:
    assert [each for each in needs(body).findings if "not part of the commit" in each.note] == []


READ = 'a = glueContext.create_dynamic_frame.from_catalog("a", "b", transformation_ctx="c")'
LOAD = f"def load(name):\n    {READ}\n    {WRITE}\n"
SWALLOWED = {
    "around a read and a write": f"try:\n    {READ}\n    {WRITE}\nexcept Exception as error:\n    print(error)",
    "around a write by Spark": "try:\n    df.write.save(path)\nexcept:\n    pass",
    "around the function of a table": (
        f"{LOAD}for name in names:\n    try:\n        load(name)\n    except Exception:\n        log(name)"
    ),
    "around a function that is handed on": (
        f"{LOAD}def all_of_them():\n    pool.map(load, names)\ntry:\n    all_of_them()\nexcept ValueError:\n    pass"
    ),
    "around a method": (
        f"class Etl:\n    def load(self):\n        {READ}\n"
        "    def run(self):\n        try:\n            self.load()\n        except ValueError:\n            pass"
    ),
    "with a raise under a condition": f"try:\n    {WRITE}\nexcept Exception:\n    if strict:\n        raise",
    "with a return from another function": (
        f"def load():\n    try:\n        {WRITE}\n    except Exception:\n        return False"
    ),
    "by suppress": f"import contextlib\nwith contextlib.suppress(Exception):\n    {WRITE}",
}


@pytest.mark.parametrize("name", SWALLOWED)
def test_swallowed_error_is_told_with_what_to_do(name: str) -> None:
    found = [note for support, what, note in told(SWALLOWED[name]) if what.startswith(("except", "suppress"))]
    assert ["spark.bookmarks.on_unused=error" in note and "Raise it again" in note for note in found] == [True]


def test_swallowed_error_has_the_line_of_its_handler() -> None:
    found = read_script(f"try:\n    {WRITE}\nexcept ValueError:\n    pass").of(Support.WORD)
    assert [(each.line, each.what) for each in found] == [(3, "except ValueError")]


NOT_SWALLOWED = {
    "raised again": f"try:\n    {WRITE}\nexcept Exception as error:\n    print(error)\n    raise",
    "an exit": f"try:\n    {WRITE}\nexcept Exception:\n    sys.exit(1)",
    "both ways": f"try:\n    {WRITE}\nexcept Exception:\n    if a:\n        raise\n    else:\n        sys.exit(1)",
    "around something else": "try:\n    x = int(args['day'])\nexcept ValueError:\n    x = 0",
    "without a handler": f"try:\n    {WRITE}\nfinally:\n    print('done')",
}


@pytest.mark.parametrize("name", NOT_SWALLOWED)
def test_error_that_ends_the_run_is_not_told(name: str) -> None:
    assert [what for _, what, _ in told(NOT_SWALLOWED[name]) if what.startswith("except")] == []


@pytest.mark.parametrize(
    "body",
    [
        f"try:\n    {WRITE}\n    job.commit()\nexcept Exception as error:\n    print(error)",
        f"def main():\n    try:\n        {WRITE}\n    except Exception:\n        return\n    job.commit()\nmain()",
    ],
    ids=["the commit is in the block", "a return passes by the commit"],
)
def test_error_that_skips_the_commit_is_not_told(body: str) -> None:
    assert [each.what for each in needs(body).findings if each.what.startswith("except")] == []


def test_commit_behind_the_block_makes_its_error_a_swallowed_one() -> None:
    body = f"try:\n    {WRITE}\n    job.commit()\nexcept Exception:\n    pass\nfinally:\n    job.commit()"
    assert [each.what for each in needs(body).findings if each.what.startswith("except")] == ["except Exception"]


IN_PLACE = {
    "a path": (
        'glueContext.create_dynamic_frame.from_options("s3", {"paths": ["s3://lake/a/"]}, transformation_ctx="c")',
        'glueContext.purge_s3_path("s3a://lake/a", {"retentionPeriod": 0})',
        'glueContext.write_dynamic_frame.from_options(a, "s3", {"path": "s3://lake/a"}, "csv")',
    ),
    "a path of an argument": (
        'PATH = args["target"]\n'
        'glueContext.create_dynamic_frame.from_options("s3", {"paths": [PATH]}, "csv", transformation_ctx="c")',
        'glueContext.purge_s3_path(args["target"])',
        WRITE,
    ),
    "a table": (
        'glueContext.create_dynamic_frame.from_catalog("a", "b", transformation_ctx="c")',
        'glueContext.purge_table("a", "b")',
        'glueContext.write_dynamic_frame.from_catalog(a, database="a", table_name="b")',
    ),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_place_that_is_read_purged_and_written_is_told_at_the_purge(name: str) -> None:
    found = [each for each in needs("\n".join(IN_PLACE[name])).findings if "read its own output" in each.note]
    assert [(each.support, each.what.partition("_")[0]) for each in found] == [(Support.WORD, "purge")]
    assert "without transformation_ctx" in found[0].note


@pytest.mark.parametrize("left", [0, 2])
def test_place_that_is_purged_and_not_both_read_and_written_is_not_told(left: int) -> None:
    body = "\n".join(part for at, part in enumerate(IN_PLACE["a path"]) if at != left)
    assert [each for each in needs(body).findings if "read its own output" in each.note] == []


def test_place_that_is_read_whole_may_be_rewritten() -> None:
    body = "\n".join(IN_PLACE["a path"]).replace(', transformation_ctx="c"', "")
    assert [each for each in needs(body).findings if "read its own output" in each.note] == []


# ---- the job, its name, and what is around it


def test_script_that_never_commits_is_told() -> None:
    found = needs(BODY.replace("job.commit()", "")).of(Support.WORD)
    assert ["nothing is committed" in each.note for each in found] == [True]


def test_script_without_a_job_is_told() -> None:
    (found,) = needs(BODY.replace("job.commit()", ""), HEAD.replace('job.init(args["JOB_NAME"], args)', "")).of(
        Support.WORD
    )
    assert "without job.init" in found.note


def test_names_in_a_list_are_the_arguments_wherever_it_stands() -> None:
    head = HEAD.replace('sys.argv, ["JOB_NAME", "target"]', "sys.argv, NAMES").replace(
        "args =", 'NAMES = ["a"]\nargs ='
    )
    assert needs(BODY, head).arguments == ("a",)


def test_names_in_sums_of_lists_are_the_arguments_as_far_as_they_are_written_down() -> None:
    head = HEAD.replace('sys.argv, ["JOB_NAME", "target"]', "sys.argv, COMMON + ['bucket'] + more()").replace(
        "args =", "COMMON = ['JOB_NAME', 'day']\nargs ="
    )
    more = "rest = getResolvedOptions(sys.argv, [*COMMON, 'pre' + 'fix', *more()])\n"

    assert needs(more + BODY, head).arguments == ("JOB_NAME", "day", "bucket", "prefix")


def test_job_that_an_object_holds_is_a_job() -> None:
    head = HEAD.replace("job = ", "self.job = ").replace("job.init", "self.job.init")
    assert needs(BODY.replace("job.commit", "self.job.commit"), head).verdict is Support.YES


@pytest.mark.parametrize("name", ['args.get("JOB_NAME", "test")', "name"])
def test_name_of_the_job_is_its_argument(name: str) -> None:
    head = HEAD.replace('job.init(args["JOB_NAME"], args)', f'name = args["JOB_NAME"]\njob.init({name}, args)')
    assert needs(BODY, head).verdict is Support.YES


def test_context_that_an_object_holds_has_the_same_members() -> None:
    head = HEAD.replace("glueContext", "self.context")
    assert needs(BODY.replace("glueContext", "self.context"), head).verdict is Support.YES
    found = needs("self.context.no_such_call()\n", head).of(Support.NO)
    assert [each.what for each in found] == ["GlueContext.no_such_call"]


def test_job_that_a_helper_begins_is_a_job() -> None:
    head = HEAD.replace('job.init(args["JOB_NAME"], args)', "initialise(args, job)")
    assert needs(BODY, head).verdict is Support.YES


def test_script_that_can_not_be_parsed_is_told_with_its_line() -> None:
    assert read_script("x = 1\nprint 'a'\n").findings[0] == ScriptFinding(
        2,
        Support.NO,
        "the script",
        "it is no Python 3 (Missing parentheses in call to 'print'. Did you mean print(...)?), so nothing more can be "
        "said of it",
    )


def test_names_of_a_module_are_those_that_it_has_here() -> None:
    assert exported("awsglue.job") == frozenset({"Job"})
    assert exported("awsglue.no_such") is None


# ---- targets

FIXED = {
    "a table of the catalog": ('glueContext.write_dynamic_frame.from_catalog(a, "shop", "clean")', "shop.clean"),
    "a path": ('glueContext.write_dynamic_frame.from_options(a, "s3", {"path": "s3://lake/a"}, "csv")', "s3://lake/a"),
    "a path by a constant": ('A = "s3://lake" + "/a"\nglueContext.getSink("s3", path=A)', "s3://lake/a"),
    "a table that a sink updates": ('sink.setCatalogInfo(catalogDatabase="a", catalogTableName="b")', "a.b"),
    "a purged path": ('glueContext.purge_s3_path("s3://lake/a", {})', "s3://lake/a"),
    "a purged table": ('glueContext.purge_table(database="a", table_name="b")', "a.b"),
    "a purged table by position": ('glueContext.purge_table(None, "a", "b", {"retentionPeriod": 0})', "a.b"),
    "a purged table of an account": ('glueContext.purge_table("123456789012", "a", "b")', "a.b"),
    "a purged table as in Scala": ('glueContext.purge_table("a", "b", {"retentionPeriod": 0})', "a.b"),
    "a frame that writes itself": ('frame.write("s3", {"path": "s3://lake/a"}, "json")', "s3://lake/a"),
    "a table of a database": ('glueContext.write_from_jdbc_conf(a, "dw", {"dbtable": "b", "database": "c"})', "dw b"),
    "a write by Spark": ('a.toDF().write.mode("append").parquet("s3://lake/a")', "s3://lake/a"),
    "a table by Spark": ('a.toDF().write.saveAsTable(name="a.b")', "a.b"),
}


@pytest.mark.parametrize("name", FIXED)
def test_target_that_the_script_names_itself_is_listed_and_changes_no_verdict(name: str) -> None:
    body, target = FIXED[name]
    assert [each.target for each in needs(body).targets] == [target]
    assert [finding.note for finding in needs(body).findings if target in finding.note] == []


MOVABLE = {
    "a path by an argument": 'glueContext.write_dynamic_frame.from_options(a, "s3", {"path": args["target"]}, "csv")',
    "a path below an argument": 'glueContext.getSink("s3", path=args["lake"] + "/a")',
    "a database by an argument": 'glueContext.write_dynamic_frame.from_catalog(a, args["database"], "clean")',
    "a read": 'spark.read.parquet("s3://lake/a")\nglueContext.create_dynamic_frame.from_catalog("a", "b")',
    "a table in a database by an argument": (
        'glueContext.write_dynamic_frame.from_options(a, "mysql", {"url": args["url"], "dbtable": "a"})'
    ),
}


@pytest.mark.parametrize("name", MOVABLE)
def test_target_that_an_argument_moves_is_not_listed(name: str) -> None:
    assert needs(MOVABLE[name]).targets == ()


# ---- folders


def test_folder_is_read_without_running_anything(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "orders.py").write_text(f"{HEAD}{BODY}raise SystemExit('it ran')\n", encoding="utf-8")
    (tmp_path / "below" / "old.scala").write_text("object GlueApp {}", encoding="utf-8")
    (tmp_path / "columns.py").write_text("NAMES = []", encoding="utf-8")
    reports = {each.path.name: each for each in inventory([tmp_path])}

    assert {name: each.verdict for name, each in reports.items()} == {
        "orders.py": "supported",
        "old.scala": "out of reach",
        "columns.py": "nothing of Glue",
    }
    document = json.loads(json.dumps(reports["orders.py"].as_dict()))
    assert document["arguments"] == ["JOB_NAME", "target"]
    assert document["supported"][-1] == {"line": 21, "verdict": "supported", "what": "Job.commit", "note": ""}
    assert document["fixed_targets"] == []
    assert reports["old.scala"].findings()[0]["note"] == "it is written in Scala, and this layer runs Python"


def test_module_beside_the_script_is_no_package_to_install(tmp_path: Path) -> None:
    (tmp_path / "columns.py").write_text("NAMES = []", encoding="utf-8")
    (tmp_path / "orders.py").write_text("import columns\nimport no_such_package\n", encoding="utf-8")
    (report,) = inventory([tmp_path / "orders.py"])
    assert [each["what"] for each in report.findings()] == ["import no_such_package"]


@pytest.mark.parametrize(("name", "why"), [("missing", "does not exist"), (".", "holds no script")])
def test_path_without_scripts_is_refused(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        inventory([tmp_path / name])


# ---- scripts that are run


def test_of_scripts_that_run_none_is_out_of_reach() -> None:
    reports = inventory([Path(__file__).parents[1] / "scripts"])
    assert len(reports) > 20
    assert [finding for report in reports for finding in report.as_dict()["out_of_reach"]] == []
    assert {report.verdict for report in reports} == {"supported", "needs a word"}
