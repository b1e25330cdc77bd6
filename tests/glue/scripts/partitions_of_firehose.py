import sys

from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.transforms import *
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "lake"])
glueContext = GlueContext(SparkContext.getOrCreate())
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

raw = glueContext.create_dynamic_frame.from_catalog(
    database="streams",
    table_name="clicks",
    push_down_predicate="year == '2024' and month >= '06'",
    transformation_ctx="raw",
)
mapped = raw.apply_mapping(
    [("user.id", "string", "user_id", "long"), ("at", "string", "at", "timestamp"), ("month", "string", "month", "int")]
)
glueContext.write_dynamic_frame.from_options(
    frame=mapped.coalesce(1),
    connection_type="s3",
    connection_options={"path": args["lake"] + "/clicks"},
    format="parquet",
)
job.commit()
