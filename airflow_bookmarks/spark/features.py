"""What the Spark of a session can do and what it lacks: found by asking for it, never by its version.

feature                       lacking in                    what becomes of a job
a whole conf at once          PySpark 3.5                   the conf is asked for by SQL
secrets in a conf             Spark Connect 4.0             a warning names those of S3 that are not known here
frames listed once            Spark Connect                 plans are read by paths; read_by="directory" is refused
all observations of a write   Spark Connect before 4.1      outputs are counted after the write; options are refused
a format                      avro: all, xml: PySpark 3.5   a read or write of it is refused, with what to do
types read as wider ones      avro, parquet: PySpark 3.5    files whose types are narrower than others are refused
variants                      PySpark 3.5                   Python finds the types of JSON in scripts for Glue
casts that never fail         PySpark 3.5                   a cast of a script for Glue may fail in ANSI mode
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Column, Observation
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

try:
    from py4j.protocol import Py4JError
except ImportError:  # pyspark-client alone has no py4j
    Py4JError = PySparkException

# What an action raises: Spark's own errors, and on a classic session what Spark has no name for.
SPARK_ERRORS = (PySparkException, Py4JError)

_NOT_CONVERTED = ("cannot be converted", "PARQUET_COLUMN_DATA_TYPE_MISMATCH", "Cannot convert Avro")
_WANTS_A_PATH = "'path' must be specified"  # spark-xml: what Spark has built in reads no path as no file
_REDACTED = "*********(redacted)"  # what SQL shows of a value that may be a secret


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client: the server plans its frames anew at each action."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def lists_once(spark: SparkSession) -> bool:
    """Whether a frame over a folder keeps the listing that it was made with: Spark Connect lists at each action."""
    return not is_connect(spark)


def names_columns_once(spark: SparkSession) -> bool:
    """Whether a column of a frame has one name through all explained queries: Spark Connect names them anew."""
    return not is_connect(spark)


def tells_last_action(spark: SparkSession) -> bool:
    """Whether an observation tells what the last action has seen, as on Spark Connect, and not what the first has."""
    return is_connect(spark)


def has_own_sessions(spark: SparkSession) -> bool:
    """Whether a session with a conf of its own can be made beside this one: on Spark Connect since PySpark 4.1."""
    return not is_connect(spark) or hasattr(spark, "cloneSession")


def interrupt(spark: SparkSession) -> None:
    """Stop what this session works on."""
    if is_connect(spark):
        spark.interruptAll()  # a server goes on with what its client has left behind
    else:
        spark.sparkContext.cancelAllJobs()


def cores_of(spark: SparkSession) -> int | None:
    """Return how many tasks Spark runs at a time, as it counts them; None on Spark Connect, which doesn't say."""
    return None if is_connect(spark) else spark.sparkContext.defaultParallelism


def session_conf(spark: SparkSession) -> dict[str, str]:
    """Return the whole conf of a session; see `hidden_conf` for what it may lack."""
    if hasattr(type(spark.conf), "getAll"):  # a property: of the object it would be read to see whether it is there
        return dict(spark.conf.getAll)
    shown = _conf_by_sql(spark)
    told = {key: spark.conf.get(key, None) if value == _REDACTED else value for key, value in shown.items()}
    return {key: value for key, value in told.items() if value is not None}


def hidden_conf(spark: SparkSession) -> tuple[str, ...]:
    """Return the keys of a session's conf whose values it keeps to itself, sorted: a server may hide its secrets."""
    if not is_connect(spark):
        return ()
    secret = [key for key, value in _conf_by_sql(spark).items() if value == _REDACTED]
    return tuple(sorted(key for key in secret if spark.conf.get(key, None) is None))


def _conf_by_sql(spark: SparkSession) -> dict[str, str]:
    """Return the conf of a session as SQL shows it, with secrets redacted."""
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def tells_observations(spark: SparkSession) -> bool:
    """Whether each observation (`DataFrame.observe`) tells this driver what an action has seen, also a write."""
    if not is_connect(spark):
        return True
    return find_spec("pyspark.sql.connect.observation") is not None and _tells_of_writes(spark)


@lru_cache(maxsize=1)
def _tells_of_writes(spark: SparkSession) -> bool:
    """Ask Spark Connect what two have seen of a write to nowhere: with PySpark 4.0 it answers for the outer one alone.

    What a context has read and what its output holds are two observations of one write.
    """
    inner, outer = Observation(), Observation()
    count = F.count(F.lit(1)).alias("rows")
    spark.range(1).observe(inner, count).observe(outer, count).write.format("noop").mode("overwrite").save()
    try:
        return all("rows" in observation.get for observation in (inner, outer))
    except SPARK_ERRORS:
        return False


def check_observations(spark: SparkSession, who: str, wanted: Sequence[str]) -> None:
    """Make sure that this Spark tells what an action has read, where options need to know it.

    Args:
        who: the job and its context, for the message.
        wanted: the options that need it, as the user gives them.

    Raises:
        OptionError: it does not.
    """
    if wanted and not tells_observations(spark):
        raise OptionError(
            f"{who}: {', '.join(wanted)} needs to know what an action has read (an Observation of DataFrame.observe), "
            f"and the Spark Connect client {spark.version} is not told all of it. Nothing was read or changed. Leave "
            "it out; or run this job on a classic session, or with PySpark 4.1 or later on Spark Connect."
        )


def check_format(spark: SparkSession, name: str, who: str) -> None:
    """Make sure that this Spark has the format: avro comes as a package, xml with Spark 4.0.

    The package of xml for Spark before 4.0 does not count. It reads one path, and neither several nor none; partition
    columns are NULL to it; and it ignores `partitionBy`, and names its files `part-00000` in each job.

    Args:
        spark: the session that is to read or write it.
        name: the format.
        who: the job and its context or output, for the message.

    Raises:
        OptionError: it has not; the message says what to do.
    """
    if name not in ("avro", "xml"):
        return
    try:
        _ = spark.read.format(name).schema("line STRING").option("rowTag", "row").load([]).columns
    except SPARK_ERRORS as error:  # of PySpark 3.5 it may be one that has no name in Python
        lack = _lack(name, str(error))
        if lack is None:
            raise
        raise OptionError(
            f"{who}: this Spark {spark.version} has {lack}. Nothing was read, written or changed. "
            f"{_remedy(name, spark.version)}"
        ) from error


def _lack(name: str, said: str) -> str | None:
    """Return what an error says that Spark lacks of a format; None: it says something else."""
    if "DATA_SOURCE_NOT_FOUND" in said or "Failed to find" in said:
        return f"no format {name!r}"
    if _WANTS_A_PATH in said:
        return (
            f"the format {name!r} by a package alone, which can't read several files as one context or keep partitions"
        )
    return None


def _remedy(name: str, version: str) -> str:
    number = version.partition("-")[0]
    if name == "avro":
        package = f"org.apache.spark:spark-avro_{'2.12' if number < '4' else '2.13'}:{number}"
        return f"Start it with --packages {package} (spark.jars.packages), or put that jar on its class path."
    return (
        "Run the job with a Spark that has it built in, 4.0 or later; or use another format, such as json, and convert "
        "the files outside of the job."
    )


def reads_as(reader: DataFrameReader, file: str, schema: StructType) -> bool:
    """Whether this Spark reads a file as columns whose types may be wider than those in it; it reads the first rows.

    Args:
        reader: Spark's reader of the format of the file.
        file: the file.
        schema: the columns.

    Raises:
        SPARK_ERRORS: the file can't be read for another reason.
    """
    try:
        reader.schema(schema).load(file).limit(1).collect()
    except SPARK_ERRORS as error:
        if not any(said in str(error) for said in _NOT_CONVERTED):
            raise
        return False
    return True


def has_variants() -> bool:
    """Whether Spark parses JSON into variants and can say what types they hold: from PySpark 4.0 on."""
    return hasattr(F, "schema_of_variant_agg")


def has_try_cast() -> bool:
    """Whether a column can be cast so that a value which doesn't fit becomes null: from PySpark 4.0 on."""
    return hasattr(Column, "try_cast")


def parameters_of(kind: type, method: str) -> list[str]:
    """Return the names of what a method of Spark's reader or writer takes after the path; none where it has no such."""
    found = getattr(kind, method, None)
    return [] if found is None else list(inspect.signature(found).parameters)[2:]
